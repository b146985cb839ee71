// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"

	"github.com/weftraft/weft/internal/svg"
)

// panel is a part of the picture: groups of bars above one axis.
type panel struct {
	title, section string
	groups         []group
}

// Sizes in the picture's own pixels.
const (
	width, height = 960, 360
	margin        = 48
	top, bottom   = 104, 300 // of the bars
	barWidth      = 34
)

const (
	weftColor, codedColor = "#94a3b8", "#1d4ed8"
)

// draw draws panels side by side, on one scale.
func draw(panels []panel) ([]byte, error) {
	highest, spoken := 1.0, "Puts a second beside etcd as released, which is 1, on Weft with coding."
	for _, p := range panels {
		spoken += " " + p.title + ":"
		for _, g := range p.groups {
			highest = max(highest, g.weft, g.coded)
			spoken += fmt.Sprintf(" %s %.2f;", g.size, g.coded)
		}
	}
	c := &canvas{Canvas: svg.New(width, height, spoken), scale: (bottom - top) / math.Ceil(highest*2) * 2}
	c.Text(margin, 34, "start", "b", "etcd on Weft: puts a second, beside etcd as released")
	c.Text(margin, 56, "start", "s", "etcd v3.7.3, unedited; 5 members, 16 clients; the line at 1 is etcd as released")
	c.legend(width-margin-300, 34)
	each := (width - margin) / len(panels)
	for i, p := range panels {
		c.panel(p, margin+i*each, each-margin)
	}
	c.Text(margin, height-16, "start", "s", "docs/"+reportFile+" has all loads, those where Weft is slower too, and how they were measured")
	return c.Bytes()
}

// canvas takes the elements of a picture.
type canvas struct {
	*svg.Canvas
	scale float64 // pixels for a ratio of 1
}

func (c *canvas) legend(x, y int) {
	for _, side := range []struct{ color, name string }{{weftColor, "Weft, coding off"}, {codedColor, "Weft with coding"}} {
		c.Printf(`<rect x="%d" y="%d" width="12" height="12" rx="2" fill="%s"/>`, x, y-11, side.color)
		c.Text(x+18, y, "start", "s", side.name)
		x += 160
	}
}

// panel draws bars between x and x+w.
func (c *canvas) panel(p panel, x, w int) {
	c.Text(x, top-18, "start", "", p.title)
	step := w / len(p.groups)
	left := func(i int) int { return x + i*step + step/2 - barWidth - 1 }
	for i, g := range p.groups {
		c.bar(left(i), g.weft, weftColor)
		c.bar(left(i)+barWidth+2, g.coded, codedColor)
		c.Text(left(i)+barWidth+1, bottom+18, "middle", "s", g.size)
	}
	c.Printf(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"/>`, x, bottom, x+w, bottom, svg.Faint)
	one := c.height(1)
	c.Printf(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-dasharray="5 4"/>`, x, one, x+w, one, svg.Ink)
	for i, g := range p.groups {
		c.figure(left(i), g.weft)
		c.figure(left(i)+barWidth+2, g.coded)
	}
}

// bar draws a bar.
func (c *canvas) bar(x int, ratio float64, color string) {
	y := c.height(ratio)
	c.Printf(`<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`, x, y, barWidth, bottom-y, color)
}

// figure writes a bar's figure above the bar, and above the line that crosses the bars.
func (c *canvas) figure(x int, ratio float64) {
	c.Text(x+barWidth/2, c.height(ratio)-6, "middle", "", fmt.Sprintf("%.2f", ratio))
}

// height returns where a bar of this ratio ends.
func (c *canvas) height(ratio float64) int { return bottom - int(math.Round(ratio*c.scale)) }
