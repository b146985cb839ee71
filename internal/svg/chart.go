// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package svg

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Chart is series of figures over two axes.
type Chart struct {
	Title, X, Y string
	// Labels, if any, are the groups of bars; each series then has a figure a group, in order.
	// Without labels a series is a line through points.
	Labels []string
	// LogX and LogY make an axis logarithmic; figures that are not positive are left out of it.
	LogX, LogY bool
	// Bytes says that X is sizes in bytes.
	Bytes  bool
	Series []Series
}

// Series is a line, or the bars of one color. X is empty for bars. NaN is no figure.
type Series struct {
	Name string
	X, Y []float64
}

// Sizes of a chart in pixels.
const (
	chartWidth, chartHeight   = 720, 380
	plotLeft, plotRight       = 76, 520
	plotTop, plotBottom       = 56, 320
	legendX, legendY, legendH = 536, 72, 20
)

var colors = []string{"#1d4ed8", "#94a3b8", "#d97706", "#059669", "#be185d", "#7c3aed", "#0e7490", "#64748b", "#a16207", "#111827"}

// scale maps figures of an axis to pixels.
type scale struct {
	low, high float64
	from, to  float64
	log       bool
}

func (s scale) at(v float64) float64 {
	if s.log {
		v = math.Log10(v)
	}
	return s.from + (v-s.low)/(s.high-s.low)*(s.to-s.from)
}

// fits reports whether the axis has a place for a figure.
func (s scale) fits(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!s.log || v > 0)
}

// over returns the scale for some figures.
func over(values []float64, log bool, from, to float64) scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1), from: from, to: to, log: log}
	for _, v := range values {
		if !s.fits(v) {
			continue
		}
		if log {
			v = math.Log10(v)
		}
		s.low, s.high = min(s.low, v), max(s.high, v)
	}
	switch {
	case s.low > s.high:
		s.low, s.high = 0, 1
	case log:
		s.low, s.high = math.Floor(s.low), math.Ceil(s.high)
	default:
		s.low = min(s.low, 0)
	}
	if s.low == s.high {
		s.high++
	}
	return s
}

// ticks returns the figures that an axis names.
func (s scale) ticks() (list []float64) {
	if s.log {
		for e := s.low; e <= s.high; e++ {
			list = append(list, math.Pow(10, e))
		}
		return list
	}
	step := s.step()
	for i := math.Ceil(s.low / step); i*step <= s.high+step/1e6; i++ {
		list = append(list, i*step)
	}
	return list
}

// step is the distance of the figures that a linear axis names.
func (s scale) step() float64 {
	step := math.Pow(10, math.Floor(math.Log10(s.high-s.low)))
	for (s.high-s.low)/step < 4 {
		step /= 2
	}
	return step
}

// upToTick returns the scale with a figure at its upper end.
func (s scale) upToTick() scale {
	if !s.log {
		step := s.step()
		s.high = math.Ceil(s.high/step) * step
	}
	return s
}

// sizes returns the powers of 16 bytes on a logarithmic axis: 16 B, 256 B, 4 KB and so on.
func (s scale) sizes() (list []float64) {
	for v := 1.; math.Log10(v) <= s.high; v *= 16 {
		if math.Log10(v) >= s.low {
			list = append(list, v)
		}
	}
	return list
}

// SVG draws the chart.
func (ch *Chart) SVG() ([]byte, error) {
	c := New(chartWidth, chartHeight, ch.spoken())
	var xs, ys []float64
	for _, s := range ch.Series {
		xs, ys = append(xs, s.X...), append(ys, s.Y...)
	}
	x, y := over(xs, ch.LogX, plotLeft, plotRight), over(ys, ch.LogY, plotBottom, plotTop).upToTick()
	c.Text(plotLeft, 30, "start", "b", ch.Title)
	c.Text((plotLeft+plotRight)/2, chartHeight-16, "middle", "s", ch.X)
	c.Text(10, plotTop-8, "start", "s", ch.Y)
	for _, v := range y.ticks() {
		at := round(y.at(v))
		c.Printf(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-opacity="0.2"/>`, plotLeft, at, plotRight, at, Faint)
		c.Text(plotLeft-6, at+4, "end", "s", number(v))
	}
	c.Printf(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"/>`, plotLeft, plotBottom, plotRight, plotBottom, Faint)
	if len(ch.Labels) > 0 {
		ch.bars(c, y)
	} else {
		ticks, name := x.ticks(), number
		if ch.Bytes && x.log {
			ticks, name = x.sizes(), size
		}
		for _, v := range ticks {
			c.Text(round(x.at(v)), plotBottom+18, "middle", "s", name(v))
		}
		ch.lines(c, x, y)
	}
	for i, s := range ch.Series {
		at := legendY + i*legendH
		c.Printf(`<rect x="%d" y="%d" width="12" height="12" rx="2" fill="%s"/>`, legendX, at-11, color(i))
		c.Text(legendX+18, at, "start", "s", s.Name)
	}
	return c.Bytes()
}

// spoken is the chart in words.
func (ch *Chart) spoken() string {
	text := ch.Title + ". " + ch.Y + " by " + ch.X + ":"
	for _, s := range ch.Series {
		text += " " + s.Name + ";"
	}
	return text
}

func (ch *Chart) bars(c *Canvas, y scale) {
	group := float64(plotRight-plotLeft) / float64(len(ch.Labels))
	width := group * 0.8 / float64(max(len(ch.Series), 1))
	for i, label := range ch.Labels {
		left := plotLeft + group*float64(i)
		c.Text(round(left+group/2), plotBottom+18, "middle", "s", label)
		for j, s := range ch.Series {
			if i >= len(s.Y) || !y.fits(s.Y[i]) {
				continue
			}
			top := y.at(s.Y[i])
			c.Printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, left+group*0.1+width*float64(j), top, width, max(plotBottom-top, 1), color(j))
		}
	}
}

// lines draws the first series above all others. A line below others is wider, so that it is seen where they coincide.
func (ch *Chart) lines(c *Canvas, x, y scale) {
	for i, s := range slices.Backward(ch.Series) {
		points := ""
		for j := range s.X {
			if j < len(s.Y) && x.fits(s.X[j]) && y.fits(s.Y[j]) {
				points += fmt.Sprintf("%.1f,%.1f ", x.at(s.X[j]), y.at(s.Y[j]))
			}
		}
		width := 2 + 5*float64(i)/float64(len(ch.Series))
		c.Printf(`<polyline points="%s" fill="none" stroke="%s" stroke-width="%.3g" stroke-linejoin="round"/>`, points, color(i), width)
	}
}

func color(i int) string { return colors[i%len(colors)] }

func round(v float64) int { return int(math.Round(v)) }

// size writes a size on an axis.
func size(v float64) string {
	switch {
	case v >= 1<<20:
		return number(v/(1<<20)) + " MB"
	case v >= 1<<10:
		return number(v/(1<<10)) + " KB"
	}
	return number(v) + " B"
}

// number writes a figure of an axis.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 4, 64) + "M"
	case a >= 1e4:
		return strconv.FormatFloat(v/1e3, 'g', 4, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
