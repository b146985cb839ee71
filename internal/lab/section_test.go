// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSectionsInADocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	require.NoError(t, os.WriteFile(path, []byte("# Title\n"), 0o644))
	section := func(verb, value string) *Section {
		return &Section{
			Verb: verb, Virtual: true, Title: "What " + verb + " costs", Intro: "Words.", Data: map[string]string{"v": value},
			Tables: []Table{{Title: "Costs:", Rows: [][]string{{"what", "bytes"}, {"all", value}}, Notes: []string{"A note."}}},
		}
	}
	for _, s := range []*Section{section("a", "1"), section("b", "2"), section("a", "3"), section("b", "22")} {
		require.NoError(t, s.Write(nil, path, false))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	want := "# Title\n\n" + section("a", "3").Markdown() + "\n" + section("b", "22").Markdown()
	require.Equal(t, want, string(got))
	require.Contains(t, want, "| what | bytes |\n|--:|--:|\n| all | 3 |\n")

	require.NoError(t, os.WriteFile(path, []byte(section("a", "1").mark("begin")+"\n"), 0o644))
	require.ErrorContains(t, section("a", "1").Write(nil, path, false), "without")

	var out bytes.Buffer
	require.NoError(t, section("a", "1").Write(&out, "", true))
	require.JSONEq(t, `{"v":"1"}`, out.String())
	out.Reset()
	require.NoError(t, section("a", "1").Write(&out, "", false))
	require.Equal(t, "What a costs\n\nWords.\n\nCosts:\n\n  what  bytes\n   all      1\nA note.\n", out.String())
}

func TestQuantile(t *testing.T) {
	require.Zero(t, Quantile(nil, 0.5))
	d := []time.Duration{4, 1, 3, 2, 5}
	require.EqualValues(t, 3, Quantile(d, 0.5))
	require.EqualValues(t, 5, Quantile(d, 1))
	require.EqualValues(t, 1, Quantile(d, 0))
	require.EqualValues(t, 5, Quantile(d, 0.99))
	require.Equal(t, []time.Duration{4, 1, 3, 2, 5}, d)
}
