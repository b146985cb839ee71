// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "io"

// Hello opens a connection.
type Hello struct {
	Cluster uint64 // both ends must name the same
	Node    uint64 // who dials
	Peer    uint64 // whom the dialer wants to talk to
	Class   Class  // of the messages that will come
	Kinds   Kinds  // that the dialer understands
}

// Answer is the other end's word on a Hello.
type Answer struct {
	Refused string // empty if accepted; at most MaxReasonLen bytes
	Kinds   Kinds  // that the answering node understands
}

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
	_, err := f.writeTo(w, FrameHello)
	return err
}

// ReadHello reads a hello. Bytes behind the fields that this version knows are
// left alone, so that later versions can say more.
func ReadHello(r io.Reader) (Hello, error) {
	payload, err := ReadFrame(r, FrameHello, MaxHelloLen, nil)
	if err != nil {
		return Hello{}, err
	}
	d := decoder{b: payload}
	h := Hello{Cluster: d.uvarint(), Node: d.uvarint(), Peer: d.uvarint(), Class: Class(d.byte()), Kinds: Kinds(d.uvarint())}
	if h.Class >= NumClasses {
		d.fail("class %d", h.Class)
	}
	return h, d.err
}

// Write writes the answer as a frame.
func (a Answer) Write(w io.Writer) error {
	var f Frame
	f.Reset()
	f.enc.text(a.Refused)
	f.enc.uvarint(uint64(a.Kinds))
	_, err := f.writeTo(w, FrameAnswer)
	return err
}

// ReadAnswer reads the answer to a hello.
func ReadAnswer(r io.Reader) (Answer, error) {
	payload, err := ReadFrame(r, FrameAnswer, MaxHelloLen, nil)
	if err != nil {
		return Answer{}, err
	}
	d := decoder{b: payload}
	a := Answer{Refused: d.text(), Kinds: Kinds(d.uvarint())}
	return a, d.err
}
