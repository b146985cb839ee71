// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCellsOfThePageSayWhatDiffersOnly(t *testing.T) {
	sides := []string{"full copies", "CRaft", "Quorum Leases", "Quorum Leases, passive"}
	for long, want := range map[string]string{
		"run. Weft beside full copies 1.10x to 3.07x, CRaft 0.98x. Weft is the best safe side":                                                                                                           "1.10-3.07, 0.98",
		"run. Weft beside full copies 1.10x, RSPaxos 0.98x to 12.10x. Weft is the best safe side":                                                                                                        "1.10, RSPaxos 0.98-12.10",
		"run. Weft beside full copies 1.00x, CRaft 2.00x, Quorum Leases 3.00x, Quorum Leases, passive 4.00x. Weft is the best safe side":                                                                 "1.00, 2.00, 3.00, 4.00",
		"run, also by processes. Weft beside CRaft 1.02x. Weft is the best safe side, or within 3% (at worst 0.98 of it: a, b)":                                                                          "*real*: CRaft 1.02. Within 3% of the best safe side (0.98: a, b)",
		"run. Weft beside full copies 0.67x, CRaft 0.11x. Weft is at 0.67 of the best safe side at worst (text 8x, full copies): because; at 0.11 of a side with a weaker guarantee at worst (a, CRaft)": "0.67, 0.11; **behind** at text 8x, full copies: because",
		`run. Weft from "leader" to "machines": 10 to 20 commands a second, 2.0x, on 3 and 39 machines`:                                                                                                  "10 to 20 (2.0x) on 3 and 39 machines",
		"not run: a reason": "not run: a reason",
	} {
		require.Equal(t, want, brief(long, sides))
	}
}

// TestPageHasTheTextsOfTheRegistry finds a page that was edited by hand, or a registry that was and whose page was not.
func TestPageHasTheTextsOfTheRegistry(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/papers.md")
	require.NoError(t, err)
	got := string(text)
	for _, r := range all() {
		require.Contains(t, got, fmt.Sprintf("| [%s](data/papers.md#%s) %s | %s |", r.Number, r.anchor(), r.Title, claims(r.Published)), r.ID())
		require.Contains(t, got, r.Reason, r.ID())
	}
	require.Equal(t, head(page(unmeasured())), head(got), "what stands above the tables")
}

// head is what stands above the first section of a page.
func head(page string) string { return strings.Split(page, "\n## ")[0] }

// unmeasured returns all rows, without results.
func unmeasured() (list []Measured) {
	for _, r := range all() {
		list = append(list, Measured{Row: r})
	}
	return list
}
