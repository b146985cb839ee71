// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

// State is what the page shows of a group. Rates are of the last seconds; the field
// Seconds of Latency says how many.
type State struct {
	AtMs    int64  `json:"at"` // since 1970
	Cluster uint64 `json:"cluster"`
	Core    string `json:"core"`
	Group   uint64 `json:"group"`
	Groups  int    `json:"groups"`
	Self    uint64 `json:"self"` // the node that shows the page; 0: a demonstration
	Leader  uint64 `json:"leader"`
	Term    uint64 `json:"term"`
	Commit  uint64 `json:"commit"`
	// Missing is how many more voters have to be up for a majority, as far as is known: 0
	// if there is one.
	Missing int `json:"missing"`

	// Sums over all members.
	WritesPerSecond float64 `json:"writesPerSecond"`
	ReadsPerSecond  float64 `json:"readsPerSecond"`
	BytesPerSecond  float64 `json:"bytesPerSecond"` // on all links

	History []Sample `json:"history"` // of two minutes, oldest first

	// The parts of the page; Roster is nil without roster leases.
	Members []MemberState `json:"members"`
	Roster  *Roster       `json:"roster,omitempty"`
	Links   []LinkState   `json:"links"`
	Entries []EntryState  `json:"entries"` // newest first
	Latency Latency       `json:"latency"`
	Events  []Event       `json:"events"` // newest first

	Controls *ControlState `json:"controls,omitempty"` // of a demonstration
}

// Sample is the writes of about a second.
type Sample struct {
	AtMs   int64   `json:"at"`     // its end
	Writes float64 `json:"writes"` // a second
}

// Whether a node answers.
const (
	Up      = "up"
	Down    = "down"
	Paused  = "paused"
	Unasked = "unasked" // its HTTP port is not known here
)

// MemberState is a node. The figures of a node that is down are the last known figures.
type MemberState struct {
	ID       uint64 `json:"id"`
	Address  string `json:"address,omitempty"`
	Vote     string `json:"vote"` // voter, learner, or none
	State    string `json:"state"`
	Why      string `json:"why,omitempty"` // it does not answer
	Role     string `json:"role"`
	Term     uint64 `json:"term"`
	Commit   uint64 `json:"commit"`
	Applied  uint64 `json:"applied"`
	Behind   uint64 `json:"behind"` // committed entries that it has not applied
	LogLost  bool   `json:"logLost,omitempty"`
	Stalled  string `json:"stalled,omitempty"`
	Weight   int    `json:"weight"`
	SyncUs   uint64 `json:"syncUs"`
	UptimeMs int64  `json:"uptimeMs"`
	PID      int    `json:"pid"`
	// Answers says that the node answers reads by itself; Named, that the roster names the node.
	Answers bool    `json:"answers"`
	Named   bool    `json:"named"`
	Served  Served  `json:"served"`
	Reads   float64 `json:"readsPerSecond"`
	Writes  float64 `json:"writesPerSecond"`
	SentPS  float64 `json:"sentPerSecond"` // bytes, to all peers

	Coding *GossipState `json:"coding,omitempty"` // nil without coding
}

// GossipState is how far a member is with the payloads of coded entries.
type GossipState struct {
	Policy  string   `json:"policy"`
	Active  bool     `json:"active"`
	Lag     uint64   `json:"lag"`     // entries from the first whose payload the member lacks up to its commit index
	DelayMs *float64 `json:"delayMs"` // mean wait of late, for a payload; null: no entry waited
	Joined  float64  `json:"joinedPerSecond"`
	Pushed  float64  `json:"pushedPerSecond"`
	Memory  int      `json:"memory"`
	StuckAt uint64   `json:"stuckAt,omitempty"`
}

// Roster is the newest roster that any node knows.
type Roster struct {
	Term    uint64 `json:"term"`
	Number  uint64 `json:"number"`
	Retired bool   `json:"retired"`
	Named   []Span `json:"named"`
}

// LinkState is what one node sends to another.
type LinkState struct {
	From      uint64  `json:"from"`
	To        uint64  `json:"to"`
	PerSecond float64 `json:"perSecond"` // bytes
	Total     uint64  `json:"total"`     // bytes, over all processes of From that were seen
	Connected bool    `json:"connected"`
	Queued    int     `json:"queued"`
	Shape     *Shape  `json:"shape,omitempty"`
}

// EntryState is a coded entry, and the units of each member.
type EntryState struct {
	Index   uint64 `json:"index"`
	Term    uint64 `json:"term"`
	Bytes   int    `json:"bytes"`
	D       int    `json:"d"`
	Encoder uint64 `json:"encoder"`
	Cells   []Cell `json:"cells"` // of the members that have the entry in their log
}

// Cell is what a member holds of an entry.
type Cell struct {
	Node    uint64 `json:"node"`
	Own     int    `json:"own"`     // units in its log
	Missing int    `json:"missing"` // 0: it has the payload
}

// Latency is a histogram of the calls at all nodes.
type Latency struct {
	Seconds  float64   `json:"seconds"`
	BoundsMs []float64 `json:"boundsMs"`
	Writes   Counts    `json:"writes"`
	Reads    Counts    `json:"reads"`
	WriteP50 *float64  `json:"writeP50"` // milliseconds, or null
	WriteP99 *float64  `json:"writeP99"`
	ReadP50  *float64  `json:"readP50"`
	ReadP99  *float64  `json:"readP99"`
}

// Event is something that happened.
type Event struct {
	Number uint64 `json:"number"`
	AtMs   int64  `json:"at"`
	Kind   string `json:"kind"` // election, member, node, roster, snapshot, stall or command
	Text   string `json:"text"`
}
