package adaptive

import (
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestDevSweep(t *testing.T) {
	if os.Getenv("DEV") == "" {
		t.Skip()
	}
	n := 5
	if s := os.Getenv("N"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	devSweep(n, os.Getenv("GROUP"), os.Getenv("VERBOSE") != "")
}

type devCell struct {
	net  Network
	mix  Mix
	load Load
	runs []run
}

func devSweep(n int, group string, verbose bool) {
	sides := Sides(n)
	scale := Scale{Time: 2 * time.Second, Min: 600, Max: 3000}
	var cells []*devCell
	for _, net := range Networks(n) {
		if group != "" && net.Group != group && net.Name != group {
			continue
		}
		if os.Getenv("TOGETHER") != "" {
			net.Together = true
		}
		for _, mix := range Mixes {
			for _, load := range Loads {
				cells = append(cells, &devCell{net: net, mix: mix, load: load})
			}
		}
	}
	work := make(chan *devCell)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for c := range work {
				for _, s := range sides {
					m := newModel(c.net, s, 1)
					c.runs = append(c.runs, drive(m, &c.net, c.mix, c.load, scale, 1))
				}
			}
		})
	}
	start := time.Now()
	for _, c := range cells {
		work <- c
	}
	close(work)
	wg.Wait()
	fmt.Println(len(cells), "cells", time.Since(start))
	type row struct {
		name   string
		filter func(c *devCell) bool
		metric func(r run) float64
	}
	rows := []row{
		{"throughput", func(c *devCell) bool { return c.load.Clients > 0 }, func(r run) float64 { return 1 / r.perSecond }},
		{"mean 30/70", func(c *devCell) bool { return c.load.Share > 0 && c.load.Share < 0.9 }, func(r run) float64 { return r.mean.Seconds() }},
		{"p99 30/70", func(c *devCell) bool { return c.load.Share > 0 && c.load.Share < 0.9 }, func(r run) float64 { return r.p99.Seconds() }},
		{"mean 95", func(c *devCell) bool { return c.load.Share > 0.9 }, func(r run) float64 { return r.mean.Seconds() }},
	}
	for _, g := range []string{Symmetric, Asymmetric, Stalls} {
		for _, rw := range rows {
			for i, s := range sides {
				var sum, worst float64
				var within, count int
				var worstName string
				type bad struct {
					name string
					x    float64
				}
				var bads []bad
				for _, c := range cells {
					if c.net.Group != g || !rw.filter(c) {
						continue
					}
					best := math.Inf(1)
					for j, sd := range sides {
						if sd.Detect > 0 && sd.Name != "published" {
							best = min(best, rw.metric(c.runs[j]))
						}
					}
					x := rw.metric(c.runs[i]) / best
					sum += math.Log(x)
					count++
					if x <= 1.03 {
						within++
					}
					name := c.net.Name + "/" + c.mix.Name + "/" + c.load.Name
					bads = append(bads, bad{name, x})
					if x > worst {
						worst, worstName = x, name
					}
				}
				if count == 0 {
					continue
				}
				fmt.Printf("%-11s %-11s %-10s %6.3f worst %6.2f within %3.0f%%  %s\n", g, rw.name, s.Name, math.Exp(sum/float64(count)), worst, 100*float64(within)/float64(count), worstName)
				if i == 0 && verbose {
					sort.Slice(bads, func(i, j int) bool { return bads[i].x > bads[j].x })
					for _, b := range bads[:min(12, len(bads))] {
						fmt.Printf("      %-40s %.2f\n", b.name, b.x)
					}
				}
			}
		}
	}
}
