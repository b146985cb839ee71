// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/raft/v3/raftpb"
)

// units returns a message of units of entries.
func units(context string, sizes ...int) Raft {
	m := &pb.Message{Type: msgUnits.Enum(), From: new(uint64(1)), To: new(uint64(2)), LogTerm: new(uint64(3)), Context: []byte(context)}
	for i, size := range sizes {
		m.Entries = append(m.Entries, &pb.Entry{Term: new(uint64(3)), Index: new(uint64(i + 1)), Data: bytes.Repeat([]byte{byte(i)}, size)})
	}
	return Raft{Message: m}
}

// Units that are pushed stay in the background; answers travel by their size.
func TestUnitsClass(t *testing.T) {
	for _, c := range []struct {
		context string
		size    int
		class   Class
	}{
		{"p", 10, ClassBackground}, {"p", 1 << 20, ClassBackground},
		{"a", 10, ClassControl}, {"a", 1 << 20, ClassAppend},
		{"r", 10, ClassControl}, {"r", 1 << 20, ClassAppend},
		{"", 10, ClassControl}, {"pp", 1 << 20, ClassAppend},
	} {
		m := Message{Group: 1, From: 1, To: 2, Body: units(c.context, c.size)}
		require.Equal(t, c.class, m.Class(), "%q, %d bytes", c.context, c.size)
		require.Equal(t, c.context == "p", m.Repaired())
	}
}

// samples returns messages of each kind, with large and small payloads.
func samples() []Message {
	entry := func(index uint64, size int) *pb.Entry {
		return &pb.Entry{Type: pb.EntryNormal.Enum(), Term: new(uint64(3)), Index: new(index), Data: bytes.Repeat([]byte{byte(index)}, size)}
	}
	app := &pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(3)), Index: new(uint64(6)),
		LogTerm: new(uint64(2)), Commit: new(uint64(5)), Entries: []*pb.Entry{entry(7, 0), entry(8, 10), entry(9, referBytes), entry(10, 3*referBytes), entry(11, 1)}}
	snap := &pb.Message{Type: pb.MsgSnap.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(3)),
		Snapshot: &pb.Snapshot{Data: []byte("host"), Metadata: &pb.SnapshotMetadata{Index: new(uint64(9)), Term: new(uint64(3))}}}
	id := CommandID{Origin: 1, Boot: 1 << 60, Sequence: 77}
	bodies := []Body{
		Raft{Message: app},
		Raft{Message: &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(3))}},
		Proposal{ID: id, Number: 2, Term: 9, Data: bytes.Repeat([]byte("x"), 2*referBytes)},
		Proposal{ID: id, Number: 1, Term: 9, ConfChange: true, Data: []byte("cc")},
		Verdict{ID: id, Number: 2, Outcome: Accepted, Index: 12, Term: 9},
		Verdict{ID: id, Number: 2, Outcome: Malformed, Leader: 3, Reason: "why"},
		Transfer{Term: 3, Transferee: 4},
		Chunk{Stream: 8, Header: snap, Data: []byte("first")},
		Chunk{Stream: 8, Number: 1, Data: bytes.Repeat([]byte("y"), referBytes), Last: true},
		Chunk{Stream: 9, Number: 5, Broken: "disk"},
		ChunkStatus{Stream: 8, OK: true},
		ChunkStatus{Stream: 8, Reason: "no"},
		units("p", 10, referBytes, 0),
		units("a", 3*referBytes),
		Raft{Message: &pb.Message{Type: pb.MsgHeartbeat.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(3))}, Digests: Digests{First: 1<<31 + 1, Settings: 1<<32 - 1}},
		Raft{Message: &pb.Message{Type: pb.MsgHeartbeat.Enum()}, Digests: Digests{Settings: 1}},
		Named{Raft: Raft{Message: &pb.Message{Type: pb.MsgApp.Enum(), Term: new(uint64(3)), Entries: []*pb.Entry{{Index: new(uint64(7))}, entry(8, 10)}}, Digests: Digests{First: 7}},
			Number: 1<<64 - 1, Names: []Name{{Boot: 1<<64 - 1, Sequence: 1<<64 - 1, Length: MaxFrame, Sum: 1<<64 - 1}}},
		Named{Raft: Raft{Message: &pb.Message{Type: pb.MsgApp.Enum(), Term: new(uint64(3)), Entries: []*pb.Entry{{Index: new(uint64(7))}}}}, Number: 1, Names: []Name{{Length: 600, Sum: 5, Relay: 1<<64 - 1}}},
		Lack{Term: 1<<64 - 1, Number: 1<<64 - 1},
		Fill{Term: 3, Number: 2, Data: [][]byte{bytes.Repeat([]byte("z"), 2*referBytes), []byte("small")}},
		Fill{Term: 1<<64 - 1, Number: 1<<64 - 1},
		Named{Raft: Raft{Message: &pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(3)), Index: new(uint64(7))}}, Number: 3,
			Run: Run{Count: 9, Relay: 4, Length: 600, Sum: 1 << 63}},
		Want{Term: 3, Number: 2, Entries: []EntryAt{{Index: 8, Term: 2}, {Index: 9, Term: 3}, {Index: 1<<64 - 1, Term: 3}}},
		Settings{Ask: true},
		Settings{All: []Setting{{Must: true, Name: "sessions", Value: "none"}, {Name: "election timeout", Value: "1s"}}},
		First{Members: []uint64{1, 4, 1<<64 - 3}},
		LogEnd{Boot: 1 << 60, Number: 3, First: 1<<32 - 1},
		LogEnd{Boot: 1<<64 - 1, Number: 1<<64 - 1, Answer: true, Index: 1<<64 - 1, First: 1<<32 - 1},
		Note{Data: []byte("of a program on top")},
		Offer{Stream: 1 << 63, Term: 4, Index: 77},
		Offer{Stream: 1, Term: 4, Index: 1<<64 - 1, Sources: []uint64{2, 5, 1<<64 - 1}},
		Fetch{Step: FetchAsk, Stream: 1 << 63, Term: 4, Index: 77},
		Fetch{Step: FetchAsk, Stream: 1 << 63, Term: 4, Index: 77, Urgency: UrgencyLearner},
		Fetch{Step: FetchLives, Stream: 1<<64 - 1, Term: 1<<64 - 1, Index: 1<<64 - 1, Number: 1<<64 - 1, Until: 1<<64 - 1},
		Health{},
		Health{Stamp: 90 * 365 * 24 * time.Hour, Answers: time.Microsecond, Held: maxDelay, Links: []HealthLink{{Node: 1<<64 - 1, Round: maxDelay}, {Node: 2}}},
		Health{Sync: maxDelay, Turn: time.Microsecond, Wait: maxDelay, Send: maxDelay, Stalled: true, Weight: 1<<64 - 1, GroupWeight: 1<<64 - 1},
		Attach{Life: 1 << 60, Number: 3},
		Attach{Life: 1<<64 - 1, Number: 1<<64 - 1, Stream: StreamID{1<<64 - 1, 1<<64 - 1}, Received: 1<<64 - 1, Leaves: true},
		Report{Life: 1, Number: 1, Closed: "full"},
		Report{Life: 1, Number: 2, Stream: StreamID{3, 4}, Counted: true, Count: 1, Leader: 2, LeaderTerm: 9, Term: 8, Index: 77, Voters: []uint64{1, 2, 3}, Learners: []uint64{9}, Row: &OriginRow{Boot: 5, Floor: 7, Above: []uint64{9, 1<<64 - 1}}},
		Report{Life: 1<<64 - 1, Number: 2, Stream: StreamID{3, 4}, Counted: true, Count: 2, Term: 8, Index: 78, Entries: []EntryResults{
			{Boot: 5, Sequence: 9, Index: 77, Results: []CommandResult{{Data: []byte("r")}, {}, {NoBytes: "an int"}, {Data: bytes.Repeat([]byte("z"), referBytes)}}},
			{Boot: 1<<64 - 1, Sequence: 10, Index: 1<<64 - 1, Lost: true}}},
		Report{Life: 1, Number: 2, Stream: StreamID{3, 4}, Count: 2, Leader: 1<<64 - 1, LeaderTerm: 1<<64 - 1, Term: 1<<64 - 1, Index: 1<<64 - 1},
		Query{Life: 1, Number: 2, Policy: QueryReadIndex, Patience: time.Second, Data: []byte("q")},
		Query{Life: 1<<64 - 1, Number: 1<<64 - 1, Policy: QueryStale, MaxAge: 90 * 365 * 24 * time.Hour, MaxEntries: 1<<64 - 1, Patience: time.Microsecond, Spans: []byte("spans")},
		Reply{Life: 1, Number: 2, Code: Answered, Index: 1<<64 - 1, By: 4, Lag: 3, Age: -1, Data: bytes.Repeat([]byte("a"), referBytes)},
		Reply{Life: 1, Number: 2, Code: AskAgain, Reason: "no leader"},
	}
	var ms []Message
	for i, b := range bodies {
		ms = append(ms, Message{Group: uint64(i), From: 1, To: 2, Body: b})
	}
	return ms
}

func encode(t testing.TB, ms []Message) []byte {
	var f Frame
	f.Reset()
	for _, m := range ms {
		before := f.Len()
		f.AppendMessage(m)
		require.LessOrEqual(t, f.Len()-before, m.Size(), "Size bounds the encoding of a %v", m.Kind())
	}
	var out bytes.Buffer
	n, err := f.WriteMessages(&out)
	require.NoError(t, err)
	require.Equal(t, int64(out.Len()), n)
	require.Equal(t, f.Len(), out.Len())
	return out.Bytes()
}

func requireEqual(t testing.TB, want, got Message) {
	t.Helper()
	require.Equal(t, want.Kind(), got.Kind())
	switch b := want.Body.(type) {
	case Raft:
		require.True(t, proto.Equal(b.Message, got.Body.(Raft).Message))
		require.Equal(t, b.Digests, got.Body.(Raft).Digests)
	case Named:
		g := got.Body.(Named)
		requireEqual(t, Message{Group: want.Group, Body: b.Raft}, Message{Group: got.Group, Body: g.Raft})
		b.Raft, g.Raft = Raft{}, Raft{}
		require.Equal(t, b, g)
	case Chunk:
		g := got.Body.(Chunk)
		require.True(t, proto.Equal(b.Header, g.Header))
		b.Header, g.Header = nil, nil
		require.Equal(t, b, g)
	default:
		require.Equal(t, want, got)
	}
	require.Equal(t, want.Group, got.Group)
}

func TestRoundTrip(t *testing.T) {
	ms := samples()
	frame := encode(t, ms)
	// A reader that returns one byte at a time, as a slow network does.
	payload, err := ReadFrame(iotest.OneByteReader(bytes.NewReader(frame)), FrameMessages, len(frame), nil)
	require.NoError(t, err)
	var got []Message
	unknown, err := DecodeMessages(payload, func(m Message) { got = append(got, m) })
	require.NoError(t, err)
	require.Zero(t, unknown)
	require.Len(t, got, len(ms))
	clear(payload) // messages do not share memory with it
	for i := range ms {
		requireEqual(t, ms[i], got[i])
	}
}

// A list of first members that nobody would write is no message.
// Fields that came later are read, and those of a later version yet are left alone; a hello without them
// is of an earlier version.
func TestHellosOfEarlierAndLaterVersions(t *testing.T) {
	want := Hello{Cluster: 1, Node: 2, Peer: 3, Class: ClassBulk, Kinds: AllKinds, Capabilities: 9, Process: 1<<64 - 1, Address: "127.0.0.1:7000", Zone: "a"}
	var b bytes.Buffer
	require.NoError(t, want.Write(&b))
	got, err := ReadHello(&b)
	require.NoError(t, err)
	require.Equal(t, want, got)

	answer := Answer{Kinds: AllKinds, Capabilities: 9, Frame: 64 << 20, Zone: "a"}
	require.NoError(t, answer.Write(&b))
	heard, err := ReadAnswer(&b)
	require.NoError(t, err)
	require.Equal(t, answer, heard)

	var f Frame
	for _, more := range [][]uint64{nil, {9}, {9, 7}, {9, 7, 0}, {9, 7, 0, 0}, {9, 7, 0, 0, 5}} {
		f.Reset()
		for _, v := range append([]uint64{1, 2, 3, 0, uint64(AllKinds)}, more...) {
			f.enc.uvarint(v)
		}
		_, err := f.writeTo(&b, frameHello)
		require.NoError(t, err)
		got, err := ReadHello(&b)
		require.NoError(t, err)
		more = append(more, 0, 0)
		require.Equal(t, Hello{Cluster: 1, Node: 2, Peer: 3, Kinds: AllKinds, Capabilities: Capabilities(more[0]), Process: more[1]}, got)
	}
}

func TestSettingsAreBounded(t *testing.T) {
	long := strings.Repeat("x", MaxSettingBytes+1)
	for _, all := range [][]Setting{make([]Setting, MaxSettings+1), {{Name: long}}, {{Value: long}}} {
		frame := encode(t, []Message{{Group: 1, From: 1, To: 2, Body: Settings{All: all}}})
		_, err := DecodeMessages(frame[HeaderLen:], func(Message) { t.Error("it was taken") })
		require.ErrorIs(t, err, ErrFrame)
	}
}

func TestBadFirstMembers(t *testing.T) {
	for _, members := range [][]uint64{nil, {0}, {2, 1}, {2, 2}, make([]uint64, maxFirst+1)} {
		var f Frame
		f.Reset()
		f.AppendMessage(Message{From: 1, To: 2, Body: First{Members: members}})
		_, err := DecodeMessages(bytes.Join(f.Messages(), nil)[HeaderLen:], func(Message) {})
		require.ErrorIs(t, err, ErrFrame, members)
	}
}

// What upstream's own decoder reads is what was meant, however it was written.
func TestRaftMessageIsProtobuf(t *testing.T) {
	m := samples()[0].Body.(Raft)
	var e encoder
	e.reset()
	m.encode(&e)
	var whole []byte
	bufs, _ := e.seal(nil)
	for _, b := range bufs {
		whole = append(whole, b...)
	}
	require.Len(t, e.cuts, 2, "the two large payloads are not copied")
	got := &pb.Message{}
	require.NoError(t, proto.Unmarshal(whole[HeaderLen:], got))
	require.True(t, proto.Equal(m.Message, got))
	require.Equal(t, proto.Size(m.Message), len(whole)-HeaderLen)
	require.Equal(t, whole[HeaderLen:], MarshalRaft(m.Message))
	again, err := UnmarshalRaft(whole[HeaderLen:])
	require.NoError(t, err)
	require.True(t, proto.Equal(m.Message, again))
}

func TestUnknownKindsAreLeftOut(t *testing.T) {
	var f Frame
	f.Reset()
	f.AppendMessage(samples()[6])
	f.enc.arena[HeaderLen] = 99
	f.AppendMessage(samples()[10])
	var out bytes.Buffer
	_, err := f.WriteMessages(&out)
	require.NoError(t, err)
	payload, err := ReadFrame(&out, FrameMessages, 1<<20, nil)
	require.NoError(t, err)
	var kinds []Kind
	unknown, err := DecodeMessages(payload, func(m Message) { kinds = append(kinds, m.Kind()) })
	require.NoError(t, err)
	require.Equal(t, 1, unknown)
	require.Equal(t, []Kind{kindChunkStatus}, kinds)
}

func TestHelloAndAnswer(t *testing.T) {
	var b bytes.Buffer
	h := Hello{Cluster: 7, Node: 1, Peer: 2, Class: ClassBackground, Kinds: AllKinds, Capabilities: 1<<63 | 1}
	require.NoError(t, h.Write(&b))
	got, err := ReadHello(&b)
	require.NoError(t, err)
	require.Equal(t, h, got)
	a := Answer{Refused: strings.Repeat("long ", 1000), Kinds: 6, Capabilities: 5}
	require.NoError(t, a.Write(&b))
	answer, err := ReadAnswer(&b)
	require.NoError(t, err)
	require.Equal(t, a.Refused[:maxReasonLen], answer.Refused)
	require.Equal(t, a.Kinds, answer.Kinds)
	require.True(t, answer.Capabilities.Has(4) && answer.Capabilities.Has(5) && !answer.Capabilities.Has(6))
	require.True(t, AllKinds.Has(KindRaft) && AllKinds.Has(kindChunkStatus) && !AllKinds.Has(0) && !AllKinds.Has(endOfKinds) && !AllKinds.Has(200))
}

// Each byte of a frame is covered: by the header's fields or the checksum.
func TestFlippedBytes(t *testing.T) {
	frame := encode(t, samples()[4:7])
	for i := range frame {
		for bit := range 8 {
			bad := bytes.Clone(frame)
			bad[i] ^= 1 << bit
			_, err := ReadFrame(bytes.NewReader(bad), FrameMessages, 1<<20, nil)
			require.Error(t, err, "byte %d, bit %d", i, bit)
		}
	}
}

func TestCutFrames(t *testing.T) {
	frame := encode(t, samples()[:1])
	_, err := ReadFrame(bytes.NewReader(nil), FrameMessages, 1<<20, nil)
	require.Equal(t, io.EOF, err)
	for n := 1; n < len(frame); n += 1 + n/3 {
		_, err := ReadFrame(bytes.NewReader(frame[:n]), FrameMessages, 1<<20, nil)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	_, err = ReadFrame(bytes.NewReader(frame), FrameMessages, len(frame)-HeaderLen-1, nil)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = ReadFrame(bytes.NewReader(frame), frameHello, 1<<20, nil)
	require.ErrorIs(t, err, ErrFrame)
	_, err = ReadFrame(strings.NewReader("GET / HTTP/1.1\r\n\r\n"), frameHello, 1<<20, nil)
	require.ErrorIs(t, err, ErrFrame)
	require.ErrorContains(t, err, "is this a Weft peer?")
}

// A length that promises much gets memory as the bytes come, not before.
func TestPromisedLength(t *testing.T) {
	head := make([]byte, HeaderLen)
	Header{typ: FrameMessages, length: 200 << 20}.put(head)
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := ReadFrame(io.MultiReader(bytes.NewReader(head), strings.NewReader("some")), FrameMessages, 256<<20, nil)
			require.ErrorIs(b, err, io.ErrUnexpectedEOF)
		}
	}).AllocedBytesPerOp()
	require.Less(t, allocated, int64(2*growStep))
}

// A Want with an entry many times would ask for many times what it is long.
func TestWantsNameEachEntryOnce(t *testing.T) {
	for _, entries := range [][]EntryAt{{{Index: 0, Term: 1}}, {{Index: 5, Term: 1}, {Index: 5, Term: 1}}, {{Index: 5, Term: 1}, {Index: 4, Term: 1}}} {
		payload := encode(t, []Message{{Group: 1, From: 2, To: 3, Body: Want{Term: 1, Number: 1, Entries: entries}}})[HeaderLen:]
		_, err := DecodeMessages(payload, func(Message) {})
		require.ErrorIs(t, err, ErrFrame, "%v", entries)
	}
}

// FuzzFrame feeds arbitrary payloads, with the right checksum, to the decoder.
// What it accepts, it must write again to the same messages.
func FuzzFrame(f *testing.F) {
	for _, m := range samples() {
		f.Add(encode(f, []Message{m})[HeaderLen:])
	}
	f.Add(encode(f, samples())[HeaderLen:])
	f.Fuzz(func(t *testing.T, payload []byte) {
		frame := make([]byte, HeaderLen, HeaderLen+len(payload))
		Header{typ: FrameMessages, length: uint32(len(payload)), crc: crc32.Checksum(payload, castagnoli)}.put(frame)
		got, err := ReadFrame(bytes.NewReader(append(frame, payload...)), FrameMessages, 1<<28, nil)
		require.NoError(t, err)
		var ms []Message
		if _, err := DecodeMessages(got, func(m Message) { ms = append(ms, m) }); err != nil {
			require.ErrorIs(t, err, ErrFrame)
		}
		var shared []Message
		if _, err := DecodeShared(bytes.Clone(payload), func(m Message) { shared = append(shared, m) }); err != nil {
			require.ErrorIs(t, err, ErrFrame)
		}
		require.Len(t, shared, len(ms))
		for i, m := range ms {
			requireEqual(t, m, shared[i])
			var again Message
			_, err := DecodeMessages(encode(t, []Message{m})[HeaderLen:], func(m Message) { again = m })
			require.NoError(t, err)
			requireEqual(t, m, again)
		}
	})
}

// FuzzHello feeds arbitrary payloads, with the right checksum, to the readers of
// hellos and answers. What they accept, they must read again as they wrote it.
func FuzzHello(f *testing.F) {
	for _, h := range []Hello{{}, {Cluster: 1, Node: 2, Peer: 3, Class: 200, Kinds: AllKinds, Capabilities: 1 << 63, Address: "a:1"}, {Zone: "b"}} {
		var b bytes.Buffer
		require.NoError(f, h.Write(&b))
		f.Add(b.Bytes()[HeaderLen:])
	}
	var b bytes.Buffer
	require.NoError(f, Answer{Refused: "no", Kinds: 6}.Write(&b))
	f.Add(b.Bytes()[HeaderLen:])
	f.Fuzz(func(t *testing.T, payload []byte) {
		frame := func(typ FrameType) *bytes.Reader {
			b := make([]byte, HeaderLen, HeaderLen+len(payload))
			Header{typ: typ, length: uint32(len(payload)), crc: crc32.Checksum(payload, castagnoli)}.put(b)
			return bytes.NewReader(append(b, payload...))
		}
		var out bytes.Buffer
		if h, err := ReadHello(frame(frameHello)); err == nil {
			require.NoError(t, h.Write(&out))
			again, err := ReadHello(&out)
			require.NoError(t, err)
			require.Equal(t, h, again)
		}
		if a, err := ReadAnswer(frame(frameAnswer)); err == nil {
			require.NoError(t, a.Write(&out))
			again, err := ReadAnswer(&out)
			require.NoError(t, err)
			require.Equal(t, a, again)
		}
	})
}

// FuzzStream feeds arbitrary bytes to whoever reads a connection.
func FuzzStream(f *testing.F) {
	f.Add(encode(f, samples()))
	f.Fuzz(func(t *testing.T, stream []byte) {
		for _, typ := range []FrameType{FrameMessages, frameHello, frameAnswer} {
			r := bytes.NewReader(stream)
			for {
				if _, err := ReadFrame(r, typ, 1<<20, nil); err != nil {
					break
				}
			}
		}
		_, _ = ReadHello(bytes.NewReader(stream))  // an error or not, but no panic
		_, _ = ReadAnswer(bytes.NewReader(stream)) // the same
	})
}

func BenchmarkEncode(b *testing.B) {
	data := make([]byte, 64<<10)
	rand.NewChaCha8([32]byte{}).Read(data) //nolint:errcheck // it never fails
	m := Message{Group: 1, From: 1, To: 2, Body: Raft{Message: &pb.Message{Type: pb.MsgApp.Enum(), From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(3)),
		Entries: []*pb.Entry{{Term: new(uint64(3)), Index: new(uint64(9)), Data: data}}}}}
	var f Frame
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		f.Reset()
		f.AppendMessage(m)
		_, _ = f.WriteMessages(io.Discard)
	}
}
