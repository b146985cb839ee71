// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"sync"

	pb "go.etcd.io/raft/v3/raftpb"
)

// MarshalBinary returns the message in a form of its own, without a frame, for transports
// that have another framing. It implements encoding.BinaryMarshaler. An error wraps
// ErrTooLarge.
func (m Message) MarshalBinary() ([]byte, error) {
	if n := m.Size(); n > maxBody {
		return nil, fmt.Errorf("%w: a message of %d bytes, want at most %d", ErrTooLarge, n, maxBody)
	}
	var f Frame
	f.Reset()
	f.AppendMessage(m)
	defer f.Reset()
	b := make([]byte, 1, f.enc.len())
	if m.Background {
		b[0] = 1
	}
	bufs, _ := f.enc.seal(nil)
	skip := HeaderLen
	for _, part := range bufs {
		n := min(skip, len(part))
		skip -= n
		b = append(b, part[n:]...)
	}
	return b, nil
}

// UnmarshalBinary is the inverse of MarshalBinary. It implements
// encoding.BinaryUnmarshaler, and does not keep b. The bytes may be a peer's: an error
// wraps ErrFrame or ErrMemory, and leaves the message as it was.
func (m *Message) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] > 1 {
		return fmt.Errorf("%w: a message begins with 0 or 1, this one is %.10x", ErrFrame, b)
	}
	var got []Message
	unknown, err := DecodeMessages(b[1:], func(m Message) { got = append(got, m) })
	if err != nil {
		return err
	}
	if len(got) != 1 || unknown != 0 {
		return fmt.Errorf("%w: %d messages of known kinds and %d of others, want 1 and 0", ErrFrame, len(got), unknown)
	}
	got[0].Background = b[0] == 1
	*m = got[0]
	return nil
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// MarshalRaft is proto.Marshal of a Raft message: what a frame has of it.
func MarshalRaft(m *pb.Message) []byte {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.reset()
	defer e.reset()
	Raft{Message: m}.encode(e)
	return e.joined()
}

// UnmarshalRaft is the inverse of MarshalRaft. The message does not share memory with b.
func UnmarshalRaft(b []byte) (*pb.Message, error) {
	r, err := (&decoder{}).raft(b)
	return r.Message, err
}
