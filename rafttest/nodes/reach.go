// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"reflect"
	"strings"
)

// Reach counts what runs came across. What is never reached is not tested.
type Reach struct {
	Elections, LeaderChanges                             uint64
	Commands, Writes, Reads, Retries, Indeterminate      uint64
	Repeated, Expired                                    uint64 // by sessions
	Refused, AtDoor, Unknown, Overloaded                 uint64 // calls
	Crashes, Kills, TornWrites, TornTails, Failures      uint64
	Partitions, Isolations, OneWay, SlowLinks, HeldLinks uint64
	SlowDisks, FullDisks, Stalls, Pauses                 uint64
	Lost, Duplicated, LinkDrops, InboxDrops, Blocked     uint64
	Superseded, HangUps                                  uint64
	Transfers, Campaigns, Floods                         uint64
	Changes, ChangesDone, Joins, Retirements             uint64
	SnapshotsSent, SnapshotsRestored, SnapshotsRefused   uint64
	StatesKept, Compactions                              uint64
}

// Add adds the counts of another run.
func (r *Reach) Add(o Reach) {
	to, from := reflect.ValueOf(r).Elem(), reflect.ValueOf(o)
	for i := range to.NumField() {
		to.Field(i).SetUint(to.Field(i).Uint() + from.Field(i).Uint())
	}
}

// Missing names what was not reached.
func (r Reach) Missing() (names []string) {
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		if v.Field(i).Uint() == 0 {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}

// String returns all counts.
func (r Reach) String() string {
	var b strings.Builder
	v := reflect.ValueOf(r)
	for i := range v.NumField() {
		fmt.Fprintf(&b, "%s %d", v.Type().Field(i).Name, v.Field(i).Uint())
		if i%6 == 5 {
			b.WriteString("\n")
		} else {
			b.WriteString("  ")
		}
	}
	return b.String()
}
