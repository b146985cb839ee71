// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command picture draws a picture for README, docs/benchmark-etcd.svg, from the figures in
// docs/data/etcd.md (make picture). A test fails while the two differ: while the report has
// no figures, there is no picture.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/weftraft/weft/internal/docs"
)

// Where figures and picture are, in the directory docs.
const (
	reportFile  = "data/etcd.md"
	pictureFile = "benchmark-etcd.svg"
)

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal("picture: ", err)
	}
}

func run() error {
	root, err := docs.Root()
	if err != nil {
		return err
	}
	svg, err := drawn(root)
	if err != nil {
		return err
	}
	to := filepath.Join(root, "docs", pictureFile)
	if err := os.WriteFile(to, svg, 0o644); err != nil {
		return err
	}
	fmt.Println("wrote", to)
	return nil
}

// drawn returns the picture for the report in root.
func drawn(root string) ([]byte, error) {
	report, err := os.ReadFile(filepath.Join(root, "docs", reportFile))
	if err != nil {
		return nil, err
	}
	var panels []panel
	for _, p := range []panel{
		{title: "links of 100 Mbit/s", section: "### 5 members, links of 100 Mbit/s"},
		{title: "links of 1 Gbit/s", section: "### 5 members, links of 1 Gbit/s"},
	} {
		if p.groups, err = ratios(string(report), p.section, "16"); err != nil {
			return nil, fmt.Errorf("docs/%s: %w", reportFile, err)
		}
		panels = append(panels, p)
	}
	return draw(panels)
}
