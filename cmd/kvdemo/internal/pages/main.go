// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Command pages writes the tables of docs/metrics.md from the metrics that kvdemo has.
//
//	go run ./cmd/kvdemo/internal/pages
//
// A test compares the document with what it would write, and checks that the dashboard
// deploy/grafana/weft.json and the alert rules name metrics that there are. The dashboard is
// edited in Grafana, and exported.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weftraft/weft/internal/docs"
)

// document is the file, from the root of the repository.
const document = "docs/metrics.md"

func main() {
	if err := write(); err != nil {
		fmt.Fprintf(os.Stderr, "pages: %v\n", err)
		os.Exit(1)
	}
}

// write brings the document in agreement with the metrics.
func write() error {
	root, err := docs.Root()
	if err != nil {
		return err
	}
	path := filepath.Join(root, document)
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := tables(old)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	if bytes.Equal(old, text) {
		return nil
	}
	fmt.Println("wrote", document)
	return os.WriteFile(path, text, 0o644)
}
