// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "io"

// Hello opens a connection.
type Hello struct {
	Cluster uint64 // both ends must name the same
	Node    uint64 // the dialer
	Peer    uint64 // the node dialed
	Class   Class  // of the messages to come; a later version may have more
	Kinds   Kinds  // understood by the dialer
	// Capabilities are the dialer's further abilities.
	Capabilities Capabilities
	// Process is a number drawn at the start of the dialing process; 0: not known, because an
	// earlier version dials.
	Process uint64
	// Address is where the dialer is reached, if it is a gateway; a node has none.
	Address string
	// Zone is the dialer's zone; empty: it has none, or an earlier version dials.
	Zone string
}

// Answer is the other end's word on a Hello.
type Answer struct {
	Refused string // empty if accepted; at most maxReasonLen bytes
	Kinds   Kinds  // understood by the answering node, and taken from the dialer
	// Capabilities are the answering node's further abilities.
	Capabilities Capabilities
	// Frame is the length of the largest frame that the answering node takes on the connection,
	// its header included; 0: not known, because an earlier version answers.
	Frame uint64
	// Zone is the answering node's zone; empty: it has none, or an earlier version answers.
	Zone string
}

// Capabilities is a set of abilities other than kinds of messages: bit i stands for
// ability i. The programs that announce and use a bit agree on its meaning; bits 0 to
// 31 are for this module, the others for programs on top. A program ignores unknown
// bits.
type Capabilities uint64

// Has reports whether all of want are in the set.
func (c Capabilities) Has(want Capabilities) bool { return c&want == want }

// Write writes the hello as a frame.
func (h Hello) Write(w io.Writer) error {
	var f Frame
	f.Reset()
	e := &f.enc
	e.uvarint(h.Cluster)
	e.uvarint(h.Node)
	e.uvarint(h.Peer)
	e.byte(byte(h.Class))
	e.uvarint(uint64(h.Kinds))
	e.uvarint(uint64(h.Capabilities))
	e.uvarint(h.Process)
	if h.Address != "" || h.Zone != "" {
		e.text(h.Address)
		e.text(h.Zone)
	}
	_, err := f.writeTo(w, frameHello)
	return err
}

// ReadHello reads a hello. Bytes behind the known fields are ignored, so that later
// versions can add fields.
func ReadHello(r io.Reader) (Hello, error) {
	payload, err := ReadFrame(r, frameHello, MaxHelloLen, nil)
	if err != nil {
		return Hello{}, err
	}
	d := decoder{b: payload}
	h := Hello{Cluster: d.uvarint(), Node: d.uvarint(), Peer: d.uvarint(), Class: Class(d.byte()), Kinds: Kinds(d.uvarint())}
	h.Capabilities = d.capabilities()
	h.Process = d.later()
	h.Address = d.laterText()
	h.Zone = d.laterText()
	return h, d.err
}

// Write writes the answer as a frame.
func (a Answer) Write(w io.Writer) error {
	var f Frame
	f.Reset()
	f.enc.text(a.Refused)
	f.enc.uvarint(uint64(a.Kinds))
	f.enc.uvarint(uint64(a.Capabilities))
	f.enc.uvarint(a.Frame)
	if a.Zone != "" {
		f.enc.text(a.Zone)
	}
	_, err := f.writeTo(w, frameAnswer)
	return err
}

// ReadAnswer reads the answer to a hello.
func ReadAnswer(r io.Reader) (Answer, error) {
	payload, err := ReadFrame(r, frameAnswer, MaxHelloLen, nil)
	if err != nil {
		return Answer{}, err
	}
	d := decoder{b: payload}
	a := Answer{Refused: d.text(), Kinds: Kinds(d.uvarint())}
	a.Capabilities = d.capabilities()
	a.Frame = d.later()
	a.Zone = d.laterText()
	return a, d.err
}

// capabilities reads a field of hellos and answers that came later than the others.
func (d *decoder) capabilities() Capabilities { return Capabilities(d.later()) }

// later reads a number that earlier versions do not send; 0 if the message ends before it.
func (d *decoder) later() uint64 {
	if len(d.b) == 0 {
		return 0
	}
	return d.uvarint()
}

// laterText reads a text that earlier versions do not send; empty if the message ends before it.
func (d *decoder) laterText() string {
	if len(d.b) == 0 {
		return ""
	}
	return d.text()
}
