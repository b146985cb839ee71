// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package leases lets members of a Raft group other than the leader answer
// linearizable reads from their own state, without a message.
//
// A roster names responders for spans of keys: nodes that may answer reads. The
// leader of a term makes the rosters of that term and numbers them; 3.7 is roster
// 7 of term 3. The leader commits a write when Raft would commit it and all
// responders of its keys have acknowledged it. A responder therefore has every
// write that a client can have seen, unless the node is a responder no longer and
// does not know. Leases exclude that case: a responder answers while a majority of
// the voters has promised it, for a while, to decide nothing without it.
//
// The package is a state machine. It reads no clock, sends nothing, and knows no
// message of Raft. A Node is told what happens, with readings of the clock; it
// says what to send, and what Raft may do.
//
// # A grant on two clocks
//
// A lease is pulled. Grantee P asks grantor G, with a nonce:
//
//	               t0                                t0+d-delta
//	P's clock  ----+=============== P counts ============)------------->
//	                \ request(nonce)         ^
//	                 \                      / answer(nonce, d, 3.7)
//	                  v                    /
//	G's clock  -------+-------------------+---------------------)------>
//	                  g1 ============= G promises ============ g1+d
//
// P counts from when it asked, G promises from when it was asked, and each goes by
// its own clock. The network cannot bring t0 behind g1, so only the rates of the two
// clocks matter, and delta covers the rates. Messages that are lost, late or
// repeated shorten what P counts.
//
// Until the promise ends, by G's clock or by P's word, G votes for nobody but P in
// a later term, does not campaign, and adopts no roster of the term in which P's role
// is smaller.
//
// # A change of the roster
//
// R no longer acknowledges entry e. The leader makes roster 3.8, without R:
//
//	leader  makes 3.8                                  3.7 is superseded:
//	   |   \                                           e is committed
//	   |    \ 3.7 and 3.8                                   ^
//	   |     v                                             / a majority has
//	G  |      revokes(n) -----> ... waits ... adopts 3.8 -+  adopted 3.8
//	   |             |             ^
//	   |             v             | confirms(n), or G's clock passes g1+d
//	R  |             drops its lease
//	S  | is a responder in both, and renews its leases meanwhile
//
// The leader waits for R until a majority of the voters has adopted 3.8. Each of
// these voters had let its promise to R end before it adopted. R therefore is bound
// to no majority when e is committed. If R is silent, the wait takes as long as
// R's leases last.
//
// # The rules
//
// Each rule has the schedule that breaks the group without the rule, its place in
// the code, and the test that shows it; "seeds" are those of TestClusters. The
// mutants with the same number (make mutants-leases) leave the rule out.
//
// L1. A grantee counts from when it sent the request. Counted from the arrival of
// a slow answer, P's lease outlives G's promise; G elects another leader, and that
// leader commits a write which P does not have. Node.stepAnswer;
// TestLeasesCountFromTheRequest.
//
// L2. A grantee counts delta less than was promised: 2*rho*L/(1+rho) for clocks
// that run within 1 +- rho, and the resolution of both clocks. Without delta a slow
// clock at P outlives a fast one at G. Config.delta; TestDriftIsTakenOffLeases.
//
// L3. Both ends measure by clocks, never by ticks. A reading that opens a right is
// made after the message, or the read, that asks for the right has arrived. Ticks
// that a pause has swallowed stretch P's lease; ticks that queued up before a
// grant run G's promise down in a burst; a reading from before a pause shows
// a lease that has ended since. A reading that ends a duty may be old. Node.advance,
// Node.at; seeds.
//
// L4. No nonce is used twice, even across restarts: it begins with a number that
// differs in each run of the node. Otherwise an answer to a request of an earlier
// run counts for a later request. Node.ask, Config.Boot; seeds.
//
// L5. A promise binds votes in every later term, votes at a leader's wish, and
// campaigns of the grantor; it outlives the term in which it was made. Otherwise a
// new leader commits a write that P does not have, and P does not know of the new
// term. Node.MayVote, Node.MayCampaign, Node.Turned;
// TestVotesAtTheLeadersWishHeedPromises.
//
// L6. A node adopts a roster in which a grantee's role is smaller after its promise
// to the grantee has ended. Adopted at once, the roster before is superseded
// while P still counts the node among its majority. Node.adoptable; seeds.
//
// L7. A node that waits for a grantee grants nothing new to it. A grantee that
// hears nothing but is heard would renew without end, and the roster and all
// writes would wait as long. Node.mayGrant; TestDeadResponderHoldsAWriteUpOnce.
//
// L8. A confirmation ends the promises that it names and no newer one, because the
// grantor may have granted again. The grantee ignores answers to requests that it has
// confirmed. A node promises nothing to one run of a grantee while it is bound to
// another run, because nonces of two runs cannot be compared. Node.stepConfirm,
// Node.stepRevoke, promise.mayRenew; TestTwoRunsOfANodeHoldNoPromisesSideBySide,
// seeds.
//
// L9. A node that starts does not vote, campaign, adopt or grant for as long as
// the longest lease, because it has forgotten what it promised. Node.mayAct; seeds.
//
// L10. A node that starts has also forgotten which roster it had adopted. In the
// term of its disk it adopts nothing until the leader has answered a request of
// this run with the number of the newest roster, and then nothing older. Otherwise
// a late announcement brings back a roster that the leader holds for superseded.
// Node.mayAdopt; TestRestartedNodeAdoptsNoOlderRoster,
// TestRestartedNodeWaitsForTheNewestRoster, TestRestartedNodeWhoseClockAllowsNoLeaseAdopts.
//
// Three voters, and R answers a read without the write e:
//
//	leader  makes 3.8, without R .......... {leader G} have 3.8: 3.7 is superseded, commits e
//	G       adopts 3.7, then 3.8            crashes, starts; a late 3.7 comes: adopts 3.7, grants R
//	R       knows 3.7, asks G for a lease                                              {G R}: answers without e
//
// L11. A node adopts and grants nothing in a term that is not on its disk. After a
// crash the node would not know that it had been in that term, and L10 would not
// hold there. Node.mayAct; TestNothingIsSaidBeforeTheTermIsDurable.
//
// L12. A lease counts for a span if P knows the roster of the lease, serves the
// span in it, has applied the configuration of the roster, and has committed up to
// its barrier. P counts itself by the roster that it has adopted, if P is a voter. A
// learner never counts itself, because a majority that elects a leader need not
// contain a voter that is bound to the learner. Node.IsStable; seeds.
//
// L13. The barrier of a responder is the leader's last index when the leader named
// the responder. Entries up to the barrier may have been committed without the
// responder. A responder that was out for a roster gets a new barrier.
// Node.nextRoster; seeds.
//
// L14. A write waits for the responders of its keys in every roster that is not
// superseded, because a responder of an older roster may still be stable.
// Responders count by name, not by number. Node.Committable;
// TestCommitsAwaitRespondersByName.
//
// L15. A roster is superseded when a majority of the voters of its configuration is
// known to have adopted later rosters. Nodes that merely know of a later roster may
// still be bound by the one before. Node.isSuperseded; seeds.
//
// L16. The leader removes a responder that has kept a write waiting for F, or has
// left the leader's requests unanswered for F. To hear the responder is not enough: a
// node that is deaf, or has a stuck disk, renews its leases and acknowledges nothing. A
// removed responder returns after it has kept up for a while that
// doubles with each removal. The while ends with its last answer and acknowledgement,
// because the leader notices silence late: a responder that falters would be named in
// its silence, and hold up writes again. A responder falters if it keeps a write waiting for
// half of F that a majority has. Three falters, each within 16 F of the one before, remove
// the responder; afterwards each falter does, until the responder has served for 16 times the
// while, or 512 F, without one. Otherwise a responder that stands still for a little less than F, again and again, holds writes up each
// time. Node.detect, Node.falters; TestDeadResponderHoldsAWriteUpOnce,
// TestSilentResponderIsRemovedFromAnIdleGroup, TestFalteringResponderIsNotNamedInItsSilence,
// TestWritesWaitForFewerAndFewerFaltersOfAResponder.
//
// L17. Voters change only while no roster in use names a responder, and none is named
// until the change is applied. Otherwise a responder that has not applied
// two changes counts a majority that the voters of a later leader do not meet.
// Node.MayChange, Node.mayName; TestConfigurationWaitsUntilNobodyIsNamed.
//
// L18. A responder reads at the last entry of its log that touches the key, not at
// its commit index: the leader may have committed the entry, and told a client. Which
// keys the entries under a snapshot touch is not known: the log before may have had others.
// Node.ReadIndex, Node.Restored; seeds.
//
// L19. Any lease of its term counts for the leader, once the leader has committed its
// empty entry. Before that it does not know what was committed before its
// term. Node.IsStable; seeds.
//
// L20. With early accept notes a responder moves its commit index up to an entry if
// by notes a majority holds the log up to there, and so do all responders of all
// keys of all entries on the way, in every roster from the least in use to the
// newest that the responder knows. With a majority alone, one responder answers with
// a write, and another, which the write has not reached, answers later without it.
// Node.Release; TestNotesOfAMajorityDoNotRelease.
//
// R and S are responders, the write is e, and a client reads twice:
//
//	leader  e is durable, sends its note
//	R       e is durable, has the leader's note: {leader R} are a majority    answers with e
//	S       e is on its way                                                                   answers without e
//	                                                                          first read      second read
//
// L21. L20 needs a note of the leader, which goes out after the leader's append is
// durable, also where the leader sends while it writes, and has the number of its newest
// roster; only a responder that knows this roster may use the note. Otherwise the leader loses the entry in a crash, or a
// responder that the leader had just named answers without it. Node.OwnNote,
// notes.under; TestLeadersNoteWaitsForItsDisk, seeds.
//
// L22. A note counts in its term only. The log that an older note speaks of may have
// been cut. Node.StepNote; TestNotesOfAnotherTermDoNotCount.
//
// L23. With notes a client may have seen what the leader has not committed. The
// leader takes its last index for a read while its newest roster names anybody;
// afterwards it takes the last index of that time, or its commit index if that is higher.
// Node.LeaderIndex; seeds.
//
// L24. No promise outlives the time after which its grantor might vote anyway,
// because the leader was not heard. Otherwise leases delay elections.
// Node.maxGrant; TestPromisesEndWithPatience.
//
// L25. A roster travels whole until its receiver reports that it knows the
// roster. A receiver that missed the roster and saw its number only would never
// adopt it. Of older rosters in use as many travel beside it as a message takes. Node.addNews;
// TestRosterIsAnnouncedUntilItIsKnown, TestBurstOfWishesIsAnnounced.
//
// L26. Waiting is state. A node that waits to adopt a roster goes on granting
// leases on roles that stay, and answers everything else. Of the rosters that it knows it adopts
// the newest that waits for nobody. Otherwise a responder that becomes deaf while the leases of
// another run out holds up the writes that wait for the other, too, for as long as its own leases
// last. Node.adoptable, Node.mayGrant; TestReadsGoOnWhileAnotherResponderDies,
// TestSecondDeafResponderHoldsUpNoWriteThatItHas, TestWritesWaitNoLongerThanTheySay.
//
// L27. A permit lets a reader answer without the node: it says for which keys, until when
// by the clock, and which entries the read has to see. The host publishes the permit that an
// event leaves before anything that the event lets out. A reader reads the clock after it
// has loaded the permit, and waits for the state machine. Otherwise a node answers a read without
// a write that it has acknowledged, or by a lease that it has confirmed away, or that has
// ended while the node stood still. Node.Permit, Permit.ReadIndex; seeds.
//
// L28. A node whose clock was found beyond the bound answers no read by a lease and grants
// none, and is bound by its promises for longer than the clock says. Otherwise a clock that
// is slow goes on to answer old reads, and a clock that is fast goes on to end promises
// early, as long as the fault lasts. When the clock is fit again, leases that were asked for
// meanwhile are given back: the clock measured them. Node.StandAside;
// TestResponderStandsAsideWhileItsClockIsUnfit, TestLeaderStandsAsideAndLeads,
// TestNodeThatStandsAsideHoldsItsPromisesForLonger,
// TestLeasesMeasuredByAnUnfitClockDoNotCount.
//
// L29. A lease counts over every set of voters without whose majority nothing is committed and
// nobody is elected: the voters in force and, where Raft counts configurations that are in the
// log and not in force, theirs too. {1 2 3} has become {1 2 3 4 5}, and a leader has applied
// neither change: 1 and 2 are a majority in force, and 3, 4 and 5 elect another leader and commit
// a write. Who comes is asked for leases, and hears of rosters, before the configuration is in
// force. Members.majorityUntil, Node.asks, Node.addNews; TestLeaseCountsOverEverySetThatCounts.
//
// L30. A leader that has stood still forgives others their silence once, and again only after
// ticks came in time for a while. A leader whose ticks are always late, because its host waits for
// a disk in the same loop, would forgive a dead responder at each tick, and hold writes up
// without end. Node.pauses; TestDeadResponderIsRemovedByALeaderWithLateTicks,
// TestPauseOfTheLeaderRemovesNobody.
//
// L31. The bound of a clock travels with each request and answer, and the worse of two nodes'
// bounds counts for both. By its own bound alone a grantee with a good clock takes too little
// off the lease of a grantor whose clock is fast. If no lease could be renewed in time,
// none is granted or taken. Config.delta, Node.stepClock; TestWorseClockCountsForBoth,
// TestNodesWhoseClocksAllowNoLeaseAreNamed.
//
// L32. Leases are retired when every member has heard of the roster that says so. A member that
// has not heard may lead next and name responders, with leases of members that are restarted
// without leases and forget their promises. Node.IsRetired;
// TestRetiredLeasesStayOffUnderTheNextLeader.
//
// L33. The leader removes a responder that limps. The lag of a responder is the time from
// an entry's append to its acknowledgement, the trip of a responder the shortest time in
// 512 F or more in which it answered a request, which waits for no disk, and
// its work the lag without the trip. A responder limps in a window, of F/16 and four
// entries or more, if its lag is half as long again as it should be, and 1 ms: it should be
// as long as the write quorum's lag, or as the responder's trip with the write quorum's
// work, whichever is longer. A responder that has limped in six windows more than not is
// removed, returns as by L16, and has not kept up while that number is above two. Without
// the rule a slow disk sets the pace of all writes, if it takes less than F/2 for each. By
// its lag alone, a responder that is far away on purpose would be removed; compared with
// its own lag of before, a responder would stay that was slow before the leader was
// elected. A member asks the leader for leases when the leader has asked, and answers in
// the same message: the answer would wait for a heartbeat, and count as distance. Where
// nobody writes, a responder that has limped returns. Node.measure, Node.isSlow,
// Node.beat; TestResponderThatLimpsIsLeftOutUntilItIsWell,
// TestResponderThatLimpsFromTheStartIsLeftOut, TestFarResponderStays,
// TestResponderThatLimpsInTurnsDoesNotFlap.
//
// L34. A new leader treats the former leader as a responder that was removed, which has to keep up
// for F before it is named, and knows the trips to all nodes from before its term: a responder, too,
// measures the trip to each node of which it asks leases, and once in 4 F an answer does not wait
// for a heartbeat. Leadership leaves a node whose disk, processor or links are slow. Without the
// first half all writes of the next leader wait for that node until it is known to limp; without the
// second half they wait without end for a node with slow links, which would count as far away.
// Node.startLeading, follow.anew, Node.stepRequest; TestFormerLeaderThatIsSlowIsNotNamed,
// TestRespondersKnowHowFarAwayOthersAre.
//
// L35. The lease of a member that has left does not count any more, also when a member of that
// id joins. It may have an empty disk, and know of no promise: 1 leads and counts the lease of
// 3, which was removed and comes back; 3 votes for 2, and a read at 1 misses what they commit.
// Behind a snapshot a node knows of nobody who has left and come back. An id should be used
// once all the same, because Raft itself counts what was acknowledged under it. Node.Configured,
// Node.Restored; TestLeaseOfAMemberThatLeftDoesNotCount.
//
// # What Raft has to do
//
//   - Brakes are questions that answer no, or less, and change nothing: MayVote and
//     MayCampaign (not for pre-votes), Committable, MayChange, MayHandOver.
//   - Reads ask ReadIndex at any node, and LeaderIndex whenever a leader would take
//     its commit index for a read.
//   - Permit, after an event and before its messages, is for reads that arrive until the
//     next event.
//   - News are Turned, TermDurable, Heard, Configured, Appended, Truncated, Restored,
//     Committed, Applied, Acknowledged, Step, StepNote and StandAside. News of the log come before
//     questions about it, and before the message that tells others of it.
//   - Work is Tick, and Poll after news and ticks.
//
// PreVote and CheckQuorum should be on. They matter for time only: without them a node
// that comes back ends all leases by its higher term. A read that waits for
// its index is Raft's or the host's, and so is its end when the log is cut, the
// leader changes or a deadline passes.
//
// The clock must be monotonic and count the time for which the system is suspended.
// Where a virtual machine is paused together with its clock, leases must be off.
//
// # Choices
//
//   - A configuration is known by its voters, and a roster carries them. After a
//     restart or a snapshot a node does not know the index of its configuration,
//     and the only question about a configuration is which sets are a majority.
//   - A roster that names nobody holds nothing up. The least roster in use is
//     therefore the least that names somebody and is not superseded.
//   - A leader names nobody until a majority of the voters, and each voter that
//     acknowledges entries, has shown that it runs with leases. Voters without leases adopt
//     nothing, so that a roster might never be superseded. A voter that has just joined gets
//     Fail to show what it runs with.
//   - The first roster of a term names nobody, so that the lease of the new leader
//     begins a round sooner. Responders are named once the leader has applied its
//     empty entry, because a change of the voters may stand before that entry.
//   - Any node that has adopted a roster grants leases on it. Only voters count.
//   - A request that cannot be granted yet is kept, and granted when the node adopts
//     a roster that allows it.
//   - The newest lease of a grantor takes the place of older ones, even if it ends
//     sooner.
//   - A reading of the clock below an earlier one counts as the earlier one.
//   - A leader that was paused gives its responders half of F before it removes
//     any, because their answers wait behind its ticks.
//   - Where wanted spans are cut anew, a responder gets for each new span the
//     highest barrier that it had there, or a new one if it did not serve the whole span.
//   - A group with a single voter waits out the quarantine, too.
package leases
