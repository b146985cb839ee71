// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package svg draws the pictures of the documents: a [Canvas] takes text, bars and lines, and a
// [Chart] is a canvas with axes, a legend and series of figures. The same input gives the same bytes.
package svg

import (
	"bytes"
	"encoding/xml"
	"fmt"
)

// The colors of all pictures.
const (
	Ink, paper, Faint = "#0f172a", "#f8fafc", "#475569"
)

// Canvas takes the elements of a picture.
type Canvas struct{ out bytes.Buffer }

// New begins a picture of a size in pixels; spoken is its text for readers who do not see it.
func New(width, height int, spoken string) *Canvas {
	c := &Canvas{}
	c.Printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`, width, height, width, height, escaped(spoken))
	c.Printf(`<style>text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:%s;font-size:13px;paint-order:stroke;stroke:%s;stroke-width:4px}.b{font-size:17px;font-weight:600}.s{fill:%s}</style>`, Ink, paper, Faint)
	c.Printf(`<rect width="%d" height="%d" fill="%s"/>`, width, height, paper)
	return c
}

// Printf adds an element.
func (c *Canvas) Printf(format string, args ...any) { fmt.Fprintf(&c.out, format+"\n", args...) }

// Text adds text that begins, ends or is centred at a place, as anchor says. The class b is for
// titles, s for what is faint.
func (c *Canvas) Text(x, y int, anchor, class, text string) {
	c.Printf(`<text x="%d" y="%d" text-anchor="%s" class="%s">%s</text>`, x, y, anchor, class, escaped(text))
}

// Bytes ends the picture. Error: the picture is not well-formed.
func (c *Canvas) Bytes() ([]byte, error) {
	c.Printf("</svg>")
	if err := xml.Unmarshal(c.out.Bytes(), new(struct{})); err != nil {
		return nil, fmt.Errorf("the picture is not well-formed: %w", err)
	}
	return c.out.Bytes(), nil
}

func escaped(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes all
	return b.String()
}
