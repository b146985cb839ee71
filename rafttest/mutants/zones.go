// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Files in which bugs of coded entries between zones stand.
const (
	spreadFile = "gossip/zones.go"
	pullerFile = "gossip/puller.go"
	passFile   = "raft/internal/coding/pass.go"
)

// zoned is the bugs of units that come into a zone once.
var zoned = []bug{
	{"units come into a zone that are there", spreadFile,
		edit("			lacks -= int(h.Units[at])\n", "			lacks -= 0 * at\n"), "TestUnitsComeIntoAZoneOnce", 0},
	{"a member that is down collects", spreadFile,
		edit("!p.down(h.Members[at]) && (h.Units[at] > 0 || !sound)", "h.Units[at] > 0 || !sound"), "TestUnitsComeIntoAZoneOnce", 0},
	{"a voter without units collects", spreadFile,
		edit("(h.Units[at] > 0 || !sound)", "(h.Units[at] > 0 || sound)"), "TestVotersWithoutUnitsDoNotCollect", 0},
	{"one voter of a zone collects at all times", spreadFile,
		edit("(int(index%uint64(len(voters)))+i)%len(voters)", "i"), "TestFiveMembersInThreeZones", 0},
	{"what was pushed within a zone is passed on there", spreadFile,
		edit("(!zoned || p.near(self, from))", "!zoned"), "TestUnitsComeIntoAZoneOnce", 0},
	{"what comes into a zone is passed to all its readers", spreadFile,
		edit("	if slot < slots {\n		if to", "	if slot < 0 {\n		if to"), "TestUnitsComeIntoAZoneOnce", 0},
	{"members without a zone are in one", spreadFile,
		edit("zones[at] = at; names[at] != \"\"", "zones[at] = at; true"), "TestMembersWhoseZonesAreNotKnownAreApart", 0},
	{"far members are asked first", pullerFile,
		edit("return p.far(a) - p.far(b)", "return p.far(b) - p.far(a)"), "TestNearMembersAreAskedFirst", 0},
	{"far members are asked without a wait", pullerFile,
		edit("now-w.since < p.waits()+int(p.hedge)", "now-w.since < p.waits()"), "TestNearMembersAreAskedFirst", 0},
	{"far members are waited with though nobody is near", pullerFile,
		edit(" &&\n		len(ring) > 0 && p.near(ring[0])", " &&\n		len(ring) > 0"), "TestNearMembersAreAskedFirst", 0},
	{"a voter passes on as a learner does", passFile,
		edit("		purpose = forZone\n", "		purpose = forPass\n"), "TestVoterPassesOnWhatComesFromAnotherZone", 0},
	{"a voter passes on what came before its entry to nobody", passFile,
		edit("a.from, a.ents[0])", "p.id, a.ents[0])"), "TestVoterPassesOnWhatComesFromAnotherZone", 0},
	{"the winner of an election takes what is passed on", passFile,
		edit("	if c.recovery != nil {\n		return nil\n	}\n	var refused", "	var refused"), "TestUnitsPassedOnInAZoneEnd", 0},
	{"a learner keeps what a voter passes on", "raft/internal/coding/messages.go",
		edit("		if c.learns(c.id) {\n			c.passOn(m)\n		}\n", ""), "TestUnitsPassedOnInAZoneEnd", 0},
	{"members that know no relays have a zone", "internal/replica/coding.go",
		edit("id != cfg.ID && !names.Relayed(id)", "id == 0"), "TestUnitsEnterAZoneOnce", 0},
}
