// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"slices"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// mergePages makes one page of those that the groups gave for the same query.
//
// A group whose page is not its last has more keys behind the last one in it.
// So the merged page ends at the least of those: up to there nothing is missing.
func mergePages(pages []kv.Page, limit int) kv.Page {
	if len(pages) == 1 {
		return pages[0]
	}
	if limit == 0 {
		limit = kv.DefaultPage
	}
	var merged kv.Page
	end, more := "", false
	for _, p := range pages {
		merged.Items = append(merged.Items, p.Items...)
		if p.Next != "" && (!more || p.Next < end) {
			end, more = p.Next, true
		}
	}
	slices.SortFunc(merged.Items, func(a, b kv.Item) int { return cmp.Compare(a.Key, b.Key) })
	keep := len(merged.Items)
	if more {
		keep, _ = slices.BinarySearchFunc(merged.Items, end, func(i kv.Item, key string) int { return cmp.Compare(i.Key, key) })
		keep++ // end itself is there
	}
	keep = min(keep, limit)
	for i, bytes := 0, 0; i < keep; i++ {
		if bytes += merged.Items[i].Bytes(); bytes > kv.MaxPageBytes && i > 0 {
			keep = i
		}
	}
	if keep < len(merged.Items) || more {
		merged.Items = merged.Items[:keep]
		merged.Next = merged.Items[keep-1].Key
	}
	return merged
}
