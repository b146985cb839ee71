// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

// Package leases lets members of a Raft group other than the leader answer
// linearizable reads from their own state, without a message.
//
// A roster names, for spans of keys, the responders: the nodes that may do so.
// The leader of a term makes the rosters of that term, and numbers them: 3.7 is
// roster 7 of term 3. A write is committed when Raft would commit it and all
// responders of its keys have acknowledged it. So a responder holds every write
// that anyone can have seen, unless it is a responder no longer and does not
// know. Leases exclude that: a responder answers while a majority of the voters
// has promised it, for a while, that nothing is decided without it.
//
// The package is a state machine. It reads no clock, sends nothing and knows
// nothing of Raft's messages: a Node is told what happens, with readings of
// the clock, and says what to send and what Raft may do.
//
// # A grant on two clocks
//
// A lease is pulled. P, who wants one, asks G with a nonce:
//
//	              t0                                t0+d-delta
//	P's clock  ---+================ P counts ===========)------------->
//	               \ request(nonce)         ^
//	                \                      / answer(nonce, d, 3.7)
//	                 v                    /
//	G's clock  ------+-------------------+---------------------)------>
//	                 g1 ============= G promises ============= g1+d
//
// P counts from when it asked, and G promises from when it was asked, each by its
// own clock. t0 is before g1, whatever the network does, so only the rates of the
// clocks matter, and delta covers those. A lost, late or repeated message makes
// what P counts shorter.
//
// Until its promise ends, by its clock or because P says so, G votes for nobody
// but P in a later term, does not campaign, and adopts no roster of the term in
// which the role of P is smaller.
//
// # A change of the roster
//
// R does not acknowledge entry e any more. The leader makes roster 3.8, without R:
//
//	leader  makes 3.8                                 3.7 is superseded:
//	   |  \                                           e is committed
//	   |   \ 3.7 and 3.8                                   ^
//	   |    v                                             / a majority has
//	G  |     revokes(n) -----> ... waits ... adopts 3.8 -+  adopted 3.8
//	   |            |             ^
//	   |            v             | confirms(n), or G's clock passes g1+d
//	R  |            drops its lease
//	S  | is a responder in both, and renews its leases all the while
//
// The leader goes on waiting for R until a majority has adopted 3.8. Each of them
// had let its promise to R end before. So R was bound to no majority any more when
// e was committed. If R does not answer, that takes as long as its lease.
//
// # The rules
//
// Each with the schedule that breaks reads, or holds up writes, where the rule is
// not kept; where it is; the test that shows it (seeds are those of TestClusters);
// and what it costs to leave it out is shown by the mutants of the same number
// (make mutants-leases).
//
// L1. A grantee counts from when it sent the request. Counted from the answer,
// which was slow, P's lease outlives G's promise; G elects another, who commits
// a write that P does not have. Node.stepAnswer; TestLeasesCountFromTheRequest.
//
// L2. It counts delta less, at least 2*rho*L/(1+rho) and a resolution of each
// clock, where clocks run within 1 +- rho. Else the slow clock of P outlives
// the fast one of G. Config.delta; TestDriftIsTakenOffLeases.
//
// L3. Both measure by clocks and not by ticks, and a reading that opens a right
// is made after the message, or the read, that asked for it has arrived. A
// process that was paused has not counted its ticks; ticks that had queued up
// run a fresh promise down at once; a reading from before the pause shows a lease
// that has ended. Ticks only say that something is to be looked at. A reading that
// ends a duty may be old. Node.advance, Node.at; seeds.
//
// L4. A nonce is never used twice, also not after a restart: it begins with what
// differs in each run. Else an answer to a request of the run before is taken
// for one to a request that was sent later. Node.ask, Config.Boot; seeds.
//
// L5. A promise binds votes of every later term, votes at a leader's wish, and
// campaigns of the grantor. Else a new leader commits what P does not have. It
// outlives the term in which it was made: P may not know of later ones.
// Node.MayVote, Node.MayCampaign, Node.Turned; seeds.
//
// L6. A roster in which a grantee's role is smaller is adopted after the promise
// has ended. Adopted at once, the older roster is superseded while P counts it
// among its majority. Node.tryAdopt; seeds.
//
// L7. Meanwhile nothing is granted to that grantee. One that hears nothing, but
// is heard, would renew without end, and the roster and all writes would wait as
// long. Node.mayGrant; TestDeadResponderHoldsAWriteUpOnce.
//
// L8. A confirmation ends what it names, and nothing newer: the grantor may have
// granted again since. The grantee ignores answers to what it has confirmed.
// Promises to two runs of a node never stand side by side, as their nonces could not be
// compared. Node.stepConfirm, Node.stepRevoke, promise.mayRenew; seeds.
//
// L9. A node that starts has forgotten what it promised. For the longest lease
// it does not vote, campaign, adopt or grant. Node.mayAct; seeds.
//
// L10. It has also forgotten which roster it had adopted. In the term it starts
// in, it adopts nothing until the leader has answered a request of this run with
// the number of its newest roster, and nothing older. Else a late announcement
// brings back a roster that the leader holds for superseded. Node.mayAdopt;
// TestRestartedNodeAdoptsNoOlderRoster.
//
// L11. Nothing is adopted or granted in a term that is not on disk. After a crash the node
// would not know that it had been there, and L10 would not hold in it.
// Node.mayAct; TestNothingIsSaidBeforeTheTermIsDurable.
//
// L12. A grant counts at P for a span if P knows its roster, serves the span in
// it, has applied the same configuration, and has committed up to its barrier there. P
// counts itself by the roster it has adopted, if it is a voter. A learner never
// counts itself: those that elect a leader without it need not meet the others.
// Node.IsStable; seeds.
//
// L13. The barrier of a responder is the last index at the time when the leader
// named it: entries up to there may have been committed without it. One that was out for a roster gets
// a new one. Node.nextRoster; seeds.
//
// L14. A write waits for the responders of its keys in every roster that is not
// superseded, and not only in the newest: whoever was named in an older one may
// still be stable. Responders count by name, not by number. Node.Committable;
// TestCommitsAwaitRespondersByName.
//
// L15. A roster is superseded when a majority of the voters of its configuration
// is known to have adopted later ones. An adoption is a fact like an
// acknowledgement. Node.isSuperseded; seeds.
//
// L16. The leader removes a responder that has kept a write waiting for F, or left the
// leader without an answer for F. Having heard of it is not enough: with a stuck
// disk, or deaf, it renews its leases and acknowledges nothing. It returns when it
// has kept up for a while that doubles each time. Node.detect;
// TestDeadResponderHoldsAWriteUpOnce.
//
// L17. Voters change while no roster that is not superseded names anyone, and
// nobody is named until the change is applied. A responder that does not know of
// two changes would count a majority that a later leader's voters do not meet. Node.MayChange;
// TestConfigurationWaitsUntilNobodyIsNamed.
//
// L18. A responder reads at the last entry of its log that touches the key, and
// not at its commit index: the leader may have committed that entry and said so to
// a client. Node.ReadIndex; seeds.
//
// L19. A leader's lease is any grant of its term, and is used once its empty
// entry is committed: before, it does not know what was committed before its term. Node.IsStable; seeds.
//
// L20. With notes, a responder sets its commit index where the leader's commit
// rule holds in its eyes: a majority holds the entries, and so do all responders
// of all their keys, its own or not, in every roster from the least in use to the
// newest that it knows. With a majority alone, one responder answers with a write
// that another, which has not received it, then answers without. Node.Release;
// TestNotesOfAMajorityDoNotRelease.
//
// L21. The leader's own note is needed, goes out after its append is durable, and tells the
// number of its newest roster; it serves those who know that roster. Else
// the leader forgets the entry in a crash, or waits for a responder that the one who
// released had not heard of. Node.OwnNote, notes.under; seeds.
//
// L22. Notes count in their term: the log that an older one speaks of may have
// been cut. Node.StepNote; TestNotesOfAnotherTermDoNotCount.
//
// L23. With notes on, somebody may have seen what the leader has not committed. It
// reads at its last index while its roster names anyone, and afterwards at the
// last index of that time, or at its commit index if that is higher. Node.LeaderIndex; seeds.
//
// L24. No promise outlives the time after which its grantor might vote anyway,
// because it has not heard the leader. So leases make no election later.
// Node.maxGrant; TestPromisesEndWithPatience.
//
// L25. A roster travels whole until its receiver says that it has it, and not
// only by its number. A node that knew the number alone would never adopt it. Node.addNews;
// TestRosterIsAnnouncedUntilItIsKnown.
//
// L26. Waiting is state. A node that waits to adopt a roster goes on granting to
// those whose role stays, and answers everything else. Node.tryAdopt;
// TestReadsGoOnWhileAnotherResponderDies.
//
// # What Raft has to do
//
// Brakes, which answer no or less, and change nothing: MayVote and MayCampaign (not
// for pre-votes), Committable, MayChange, MayHandOver.
// Reads: ReadIndex at any node, LeaderIndex for reads that reach the leader in
// whatever way. News: Turned, TermDurable, Heard, Configured, Appended,
// Truncated, Committed, Applied, Acknowledged, Step, StepNote. Work: Tick, and Poll after
// news and ticks. The log's news comes before the questions about it: an entry is
// Appended here before a read is asked for its index, or a message tells of it.
//
// PreVote and CheckQuorum should be on. Nothing depends on them for safety; without them
// a node that comes back ends leases by its higher term.
//
// A read that waits for its index, and what becomes of it when the log is cut, the
// leader changes or it takes too long, is Raft's and the host's.
//
// # Where a choice was left
//
//   - A configuration is known by its voters, and rosters carry them. Indexes
//     of configurations are not known after a restart or a snapshot, and all that is ever asked is
//     which sets are a majority.
//   - Rosters that name nobody hold up nothing, so the least roster in use is the
//     least that names somebody and is not superseded.
//   - The first roster of a term names nobody, so that the lease of a new leader
//     begins one round sooner. It names responders once it has applied its empty
//     entry, because a change of the voters may be in its log before.
//   - Whoever has adopted a roster grants on it, voter or not. Only voters count.
//   - A request that cannot be granted yet is kept, and granted when a roster is
//     adopted that allows it.
//   - A newer lease of a grantor takes the place of the older one, also if it
//     ends sooner.
//   - While a promise to one run of a node is out, no other run of it is granted anything.
//   - Reading the clock backwards is taken for a late call: the latest reading
//     counts.
//   - If the leader itself was paused, it gives its responders half of F again
//     before it removes any: their answers wait behind its ticks.
//   - Where spans are cut anew, a responder gets for each new span the highest of the barriers it had
//     in it, or a new one if it had not served all of it.
package leases
