// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// Results of the verbs, as --json prints them.
type (
	// place is a place among the changes of a group, as watch counts them: that of a
	// write, or one that a value that was read is not older than.
	place struct {
		Group    uint64 `json:"group,omitempty"` // 0: a retry found the write done, and its place is not known
		Revision uint64 `json:"revision,omitempty"`
	}
	putResult struct {
		Key   string `json:"key"`
		Bytes int64  `json:"bytes"`
		place
	}
	getResult struct {
		Key   string `json:"key"`
		Value []byte `json:"value"` // base64
		place

		Changed uint64 `json:"changed,omitempty"` // the revision at which the key was changed last, if asked for

		Served *kvpb.Served `json:"served,omitempty"` // absent from an older node
	}
	delResult struct {
		Key     string `json:"key"`
		Existed bool   `json:"existed"`
		place
	}
	lsResult struct {
		Key    string `json:"key"`
		Bytes  uint64 `json:"bytes"`
		SHA256 string `json:"sha256,omitempty"`
	}
	transferResult struct {
		Leader uint64 `json:"leader"`
		Group  uint64 `json:"group,omitempty"` // 0: all
	}
	snapshotResult struct {
		Endpoint   string `json:"endpoint"`
		Group      uint64 `json:"group"`
		Durable    uint64 `json:"durable"`
		FirstIndex uint64 `json:"first_index"`
		LogBytes   uint64 `json:"log_bytes"`
	}
)

func placeOf(p *kvpb.Position) place { return place{p.GetGroup(), p.GetRevision()} }

func (p place) String() string {
	if p.Group == 0 {
		return ", as a retry found"
	}
	return fmt.Sprintf(" at revision %d of group %d", p.Revision, p.Group)
}

func (r putResult) String() string {
	return fmt.Sprintf("put %s (%d bytes)%v", printable(r.Key), r.Bytes, r.place)
}

func (r delResult) String() string {
	if !r.Existed {
		return fmt.Sprintf("%s had no value%v", printable(r.Key), r.place)
	}
	return fmt.Sprintf("deleted %s%v", printable(r.Key), r.place)
}

func (r transferResult) String() string {
	if r.Group == 0 {
		return fmt.Sprintf("node %d leads", r.Leader)
	}
	return fmt.Sprintf("node %d leads group %d", r.Leader, r.Group)
}

// printable returns a foreign text, such as a key, in a form safe for a terminal:
// quoted if the text has characters with an effect on a terminal or on a table's
// columns, or looks quoted.
func printable(text string) string {
	if strings.HasPrefix(text, `"`) || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// print prints a result as a line of text or JSON.
func (f *clientFlags) print(cmd *cobra.Command, result any) error {
	if f.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(result)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), result)
	return err
}

// table prints rows, as text in columns or as JSON objects.
type table struct {
	w   *tabwriter.Writer // nil for JSON
	enc *json.Encoder
}

func (f *clientFlags) table(cmd *cobra.Command, columns ...string) *table {
	if f.json {
		return &table{enc: json.NewEncoder(cmd.OutOrStdout())}
	}
	t := &table{w: tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)}
	fmt.Fprintln(t.w, strings.Join(columns, "\t"))
	return t
}

// rowsOf prints rows of each answer. All endpoints must answer.
func rowsOf[T any](t *table, answers []client.Answer[T], rows func(endpoint string, response T) error) error {
	var errs []error
	for _, a := range answers {
		if a.Err != nil {
			errs = append(errs, a.Err)
		} else if err := rows(a.Endpoint, a.Response); err != nil {
			return err
		}
	}
	return errors.Join(append(errs, t.flush())...)
}

// row prints the object, or the cells.
func (t *table) row(object any, cells ...any) error {
	if t.w == nil {
		return t.enc.Encode(object)
	}
	for i := range cells {
		cells[i] = printable(fmt.Sprint(cells[i]))
	}
	format := strings.TrimSuffix(strings.Repeat("%s\t", len(cells)), "\t") + "\n"
	_, err := fmt.Fprintf(t.w, format, cells...)
	return err
}

// rows prints the object, or a row for each list of cells.
func (t *table) rows(object any, rows ...[]any) error {
	if t.w == nil {
		return t.enc.Encode(object)
	}
	for _, cells := range rows {
		if err := t.row(object, cells...); err != nil {
			return err
		}
	}
	return nil
}

// more prints one more table of rows, if there are any. With --json the objects of the first table have it all.
func (f *clientFlags) more(cmd *cobra.Command, rows [][]any, columns ...string) error {
	if f.json || len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(cmd.OutOrStdout())
	t := f.table(cmd, columns...)
	return errors.Join(t.rows(nil, rows...), t.flush())
}

func (t *table) flush() error {
	if t.w == nil {
		return nil
	}
	return t.w.Flush()
}
