// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/internal/lab"
	"github.com/weftraft/weft/internal/process"
)

func config() Config {
	return Config{
		Sides:   []Side{{Name: "etcd", About: "as released."}, {Name: "Weft", About: "off."}, {Name: "coded", About: "on.", Codes: true}},
		Members: []int{3, 5}, Links: []int64{100e6, 0}, Sizes: []int{1 << 10, 64 << 10}, Clients: []int{1, 16},
		Rounds: 3, Warm: time.Second, Time: time.Second, Coded: 4096, Progress: func(string) {},
	}
}

// rowOf is a row whose sides have these puts a second in each round.
func rowOf(l Load, puts ...float64) *Row {
	r := &Row{Load: l}
	for i, name := range []string{"etcd", "Weft", "coded"} {
		c := &Cell{Side: name}
		for round, factor := range []float64{1, 0.5, 2} {
			x := puts[i] * factor
			c.Samples = append(c.Samples, Sample{Puts: 10, PutsPerS: x, P50: x, P99: x, CPU: x, Disk: x, LeaderSent: x, AllSent: x, Others: float64(round+1) / 10})
		}
		r.Cells = append(r.Cells, c)
	}
	return r
}

func TestMistakesAreNamed(t *testing.T) {
	require.NoError(t, config().Validate())
	for says, spoil := range map[string]func(*Config){
		"--members: [0], want numbers of 1 to 9":     func(c *Config) { c.Members = []int{0} },
		"--sizes: [2000000], want numbers of":        func(c *Config) { c.Sizes = []int{2e6} },
		"--clients: [], want numbers of 1 to 1000":   func(c *Config) { c.Clients = nil },
		"--rounds: [0], want numbers of":             func(c *Config) { c.Rounds = 0 },
		"--links: none":                              func(c *Config) { c.Links = nil },
		"Rate is 7 bits a second, want 0 (no bound)": func(c *Config) { c.Links = []int64{7} },
		"Kind is \"wire\", want namespaces, relay":   func(c *Config) { c.Network = "wire" },
		"--others: 1.5, want 0 to 1":                 func(c *Config) { c.Others = 1.5 },
		"--time: 1ms, want 100ms":                    func(c *Config) { c.Time = time.Millisecond },
	} {
		c := config()
		spoil(&c)
		require.ErrorContains(t, c.Validate(), says)
	}
}

func TestEveryValueIsLookedFor(t *testing.T) {
	l := &load{prefix: "p", size: 100, seed: 7}
	a, b, unknown := put{0, 0}, put{0, 1}, put{3, 0}
	l.acks = map[put]bool{a: true, b: true, unknown: false}
	have := map[string][]byte{a.key("p"): l.value(a), b.key("p"): l.value(b)}
	require.NoError(t, l.compare(have))

	with := maps.Clone(have)
	with[unknown.key("p")] = l.value(unknown)
	require.NoError(t, l.compare(with), "it may have happened")

	lost := maps.Clone(have)
	delete(lost, b.key("p"))
	require.ErrorContains(t, l.compare(lost), "key p/000/000001 is not there")

	damaged := maps.Clone(have)
	damaged[a.key("p")] = bytes.Clone(have[a.key("p")])
	damaged[a.key("p")][99] ^= 1
	require.ErrorContains(t, l.compare(damaged), "key p/000/000000 has other bytes")

	strange := maps.Clone(have)
	strange["p/9"] = nil
	require.ErrorContains(t, l.compare(strange), "1 keys are there that nobody put")
	require.ErrorIs(t, l.compare(strange), errLost)
}

func TestMachineIsBusyWithOthers(t *testing.T) {
	before := machine{process.Machine{Busy: time.Minute, All: time.Hour}, time.Second}
	after := machine{process.Machine{Busy: time.Minute + 900*time.Millisecond, All: time.Hour + 4*time.Second}, 1200 * time.Millisecond}
	require.InDelta(t, 0.1, after.others(before, 300*time.Millisecond), 1e-9)
	require.Zero(t, after.others(before, time.Minute), "ticks are coarse")
}

func TestQuietestMeasurementCounts(t *testing.T) {
	type taken struct {
		others   float64
		restless bool
	}
	measure := func(all ...taken) (c Cell, used int, err error) {
		err = c.measure(0.3, func(attempt int) (Sample, bool, error) {
			require.Equal(t, used, attempt)
			used++
			return Sample{Others: all[attempt].others}, all[attempt].restless, nil
		})
		return c, used, err
	}
	for _, x := range []struct {
		all            []taken
		counts         float64
		used           int
		restless, busy int
	}{
		{[]taken{{0.3, false}}, 0.3, 1, 0, 0},
		{[]taken{{0.8, false}, {0.1, false}}, 0.1, 2, 0, 1},
		{[]taken{{0.8, false}, {0.6, false}, {0.7, false}}, 0.6, 3, 0, 2},
		{[]taken{{0.1, true}, {0.8, false}, {0.2, true}, {0.2, false}}, 0.2, 4, 2, 1},
		{[]taken{{0.1, true}, {0.1, true}, {0.1, true}, {0.1, true}, {0.9, false}}, 0.9, 5, 4, 1},
	} {
		c, used, err := measure(x.all...)
		require.NoError(t, err)
		require.Equal(t, Cell{Samples: []Sample{{Others: x.counts}}, Restless: x.restless, Disturbed: x.busy}, c)
		require.Equal(t, x.used, used)
	}
	_, _, err := measure(taken{restless: true}, taken{restless: true}, taken{restless: true}, taken{restless: true}, taken{restless: true})
	require.ErrorIs(t, err, errRestless)
}

func TestRowsOutliveARun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows")
	at := Circumstances{Rounds: 3, Network: lab.Relay}
	s, err := OpenStore(path, at)
	require.NoError(t, err)
	first, second := rowOf(Load{3, 0, 1024, 1}, 1, 2, 3), rowOf(Load{3, 0, 1024, 16}, 4, 5, 6)
	require.NoError(t, s.Add(first, second))

	// A run was killed during a write.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"members":5,"link`)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	s, err = OpenStore(path, at)
	require.NoError(t, err)
	require.Equal(t, []*Row{first, second}, s.Rows)
	require.True(t, s.Has(first.Load))
	require.False(t, s.Has(Load{5, 0, 1024, 1}))
	require.NoError(t, s.Add(rowOf(Load{5, 0, 1024, 1}, 7, 8, 9)))
	s, err = OpenStore(path, at)
	require.NoError(t, err)
	require.Len(t, s.Rows, 3)

	_, err = OpenStore(path, Circumstances{Rounds: 4, Network: lab.Relay})
	require.ErrorIs(t, err, errOther)
	require.ErrorContains(t, err, path)
	s, err = OpenStore("", at)
	require.NoError(t, err)
	require.NoError(t, s.Add(first), "kept in memory")
}

func TestReportSaysWhoLoses(t *testing.T) {
	cfg := config()
	s := &Store{At: Circumstances{Rounds: 3, Others: 0.25, Network: lab.Namespaces}}
	require.Empty(t, s.Headline(cfg), "rows are missing")
	require.NotContains(t, s.Section(cfg).Markdown(), "In short")
	for _, l := range cfg.loads() {
		puts := []float64{100, 95, 300}
		if l == (Load{3, 0, 1024, 1}) {
			puts = []float64{100, 80, 70}
		}
		s.Rows = append(s.Rows, rowOf(l, puts...))
	}
	s.Rows[0].Cells[1].Failed, s.Rows[0].Cells[2].Restless = 2, 1
	require.Equal(t, "etcd v3.7.3, unedited, on Weft with coding, 5 members on links of 100 Mbit/s, 16 clients: 300 puts/s of\n"+
		"64 KB, where etcd as released takes 100.\n"+
		"At worst it takes 70% of the puts of etcd as released: 3 members, links without a bound, 1 KB x 1.", s.Headline(cfg))
	got := s.Section(cfg).Markdown()
	for _, says := range []string{
		s.Headline(cfg),
		"| Weft | puts a second | 0 | 15 | 1 | 0.80: 3 members, links without a bound, 1 KB x 1 |",
		"| coded | puts a second | 15 | 0 | 1 | 0.70: 3 members, links without a bound, 1 KB x 1 |",
		// In these rows all figures equal the puts a second, and for all other figures fewer is
		// better.
		"| coded | processor time | 1 | 0 | 15 | 3.00: 3 members, links of 100 Mbit/s, 1 KB x 1 |",
		"Fewer puts a second than etcd:\n\n- Weft, 3 members, links without a bound, 1 KB x 1: 0.80 (0.80 to 0.80)\n- coded, 3 members, links without a bound, 1 KB x 1: 0.70 (0.70 to 0.70)\n",
		"### 5 members, links of 100 Mbit/s",
		"| 64 KB | 16 | 0.95 / 3.00 | 100 / 95.0 / 300 |",
		"- 3 members, links of 100 Mbit/s, 1 KB x 1, Weft: 2 puts failed.",
		"- 3 members, links of 100 Mbit/s, 1 KB x 1, coded: 1 measurements were made again, as the leader changed.",
		networkAbout[lab.Namespaces],
		"took 20% of\nits processors in the median measurement, and 30% in the worst; where it was more than 25%, a measurement was made again,",
	} {
		require.Contains(t, got, says)
	}
	require.NotContains(t, got, "too busy")
	s.At.Others = 0.15
	require.Contains(t, s.Section(cfg).Markdown(), "**The machine was too busy for this.**")
	s.Rows[slices.IndexFunc(s.Rows, func(r *Row) bool { return r.Load == Load{3, 0, 1024, 1} })] = rowOf(Load{3, 0, 1024, 1}, 100, 100, 100)
	require.Contains(t, s.Headline(cfg), "Nowhere does it take fewer puts, by more than 10%.")
	require.Equal(t, 4, strings.Count(got, "\n### "))
	s.Rows = slices.DeleteFunc(s.Rows, func(r *Row) bool { return r.Members == 5 })
	require.Empty(t, s.Headline(cfg), "rows are missing")
	require.Equal(t, 2, strings.Count(s.Section(cfg).Markdown(), "\n### "), "a table without rows is left out")
}
