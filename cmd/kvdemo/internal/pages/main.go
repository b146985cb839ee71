// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command pages writes what follows from the list of kvdemo's metrics: the tables of
// docs/metrics.md, and the dashboard deploy/grafana/weft.json.
//
//	go run ./cmd/kvdemo/internal/pages
//
// A test compares both files with what it would write.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weftraft/weft/internal/docs"
)

// The files, from the root of the repository.
const (
	document  = "docs/metrics.md"
	dashboard = "deploy/grafana/weft.json"
)

func main() {
	root, err := docs.Root()
	if err == nil {
		err = write(root)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "pages: %v\n", err)
		os.Exit(1)
	}
}

// write brings both files in agreement with the metrics.
func write(root string) error {
	for name, make := range map[string]func(old []byte) ([]byte, error){document: tables, dashboard: grafana} {
		path := filepath.Join(root, name)
		old, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		text, err := make(old)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if bytes.Equal(old, text) {
			continue
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
		fmt.Println("wrote", name)
	}
	return nil
}
