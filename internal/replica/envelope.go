// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weftraft/weft/internal/wire"
)

// The data of a normal entry begins with one byte that says how the rest is
// read. It is durable and replicated, so a value is never given a new meaning;
// a node that meets one it does not know stops (errEntryFormat). Entries without
// data are the core's own and mean nothing to a state machine.
//
//	verbatim  a command, without an id: applied as often as it is in the log
//	single    id, floor, a command
//	batch     id, floor, count, and each command with its length in front
//	internal  id, floor: no command. It ends the life of its id: if it is
//	          applied first, a batch of that id no longer is.
//
// Numbers are uvarints. The floor is the least sequence of the origin's boot
// whose fate was open when the entry was made: see originTable.
const (
	kindVerbatim byte = 0x10 + iota
	kindSingle
	kindBatch
	kindInternal
)

// envelope is a decoded entry.
type envelope struct {
	kind     byte
	id       wire.CommandID // zero if verbatim
	floor    uint64
	commands [][]byte // share the entry's memory
}

// encodeBatch makes an entry of commands, in the smallest form there is.
func encodeBatch(id wire.CommandID, floor uint64, commands [][]byte) []byte {
	size := 1 + 5*binary.MaxVarintLen64
	for _, c := range commands {
		size += len(c) + binary.MaxVarintLen32
	}
	b := make([]byte, 1, size)
	b = binary.AppendUvarint(b, id.Origin)
	b = binary.AppendUvarint(b, id.Boot)
	b = binary.AppendUvarint(b, id.Sequence)
	b = binary.AppendUvarint(b, floor)
	switch len(commands) {
	case 0:
		b[0] = kindInternal
	case 1:
		b[0] = kindSingle
		b = append(b, commands[0]...)
	default:
		b[0] = kindBatch
		b = binary.AppendUvarint(b, uint64(len(commands)))
		for _, c := range commands {
			b = binary.AppendUvarint(b, uint64(len(c)))
			b = append(b, c...)
		}
	}
	return b
}

// decodeEnvelope reads the data of a normal entry that is not empty.
func decodeEnvelope(data []byte) (envelope, error) {
	env, rest, err := decodeHead(data)
	if err != nil {
		return envelope{}, err
	}
	if env.kind == kindVerbatim {
		env.commands = [][]byte{rest}
		return env, nil
	}
	return env, env.decodeCommands(rest)
}

// decodeHead reads the part before the commands, and returns the rest.
func decodeHead(data []byte) (env envelope, rest []byte, err error) {
	if len(data) == 0 {
		return envelope{}, nil, fmt.Errorf("%w: no data", errEntryFormat)
	}
	env.kind, rest = data[0], data[1:]
	if env.kind == kindVerbatim {
		return env, rest, nil
	}
	if env.kind < kindVerbatim || env.kind > kindInternal {
		return envelope{}, nil, fmt.Errorf("%w: it begins with %#02x, a form that this version does not know; run the version that wrote it", errEntryFormat, env.kind)
	}
	for _, v := range []*uint64{&env.id.Origin, &env.id.Boot, &env.id.Sequence, &env.floor} {
		x, n := binary.Uvarint(rest)
		if n <= 0 {
			return envelope{}, nil, fmt.Errorf("%w: its id is cut off", errEntryFormat)
		}
		*v, rest = x, rest[n:]
	}
	if id := env.id; id.Origin == 0 || id.Sequence == 0 || env.floor > id.Sequence {
		return envelope{}, nil, fmt.Errorf("%w: id %v with floor %d", errEntryFormat, env.id, env.floor)
	}
	return env, rest, nil
}

func (env *envelope) decodeCommands(rest []byte) error {
	switch env.kind {
	case kindInternal:
		if len(rest) > 0 {
			return fmt.Errorf("%w: %d bytes behind the end", errEntryFormat, len(rest))
		}
		return nil
	case kindSingle:
		env.commands = [][]byte{rest}
		return nil
	}
	count, n := binary.Uvarint(rest)
	if n <= 0 || count > uint64(len(rest)-n) {
		return fmt.Errorf("%w: a batch of %d commands in %d bytes", errEntryFormat, count, len(rest))
	}
	rest = rest[n:]
	env.commands = make([][]byte, count)
	for i := range env.commands {
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return fmt.Errorf("%w: command %d of %d is cut off", errEntryFormat, i+1, count)
		}
		end := n + int(size)
		env.commands[i], rest = rest[n:end:end], rest[end:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes behind the last command", errEntryFormat, len(rest))
	}
	return nil
}

// Bounds of what a leader takes, as reading it takes memory: 24 bytes for each
// command of a batch, and 72 for each change of the member set, beside their own. No
// origin makes a larger batch. What is in a log is read, whatever it has.
const (
	maxBatchCommands = 1 << 20
	maxChanges       = 64 << 10
	// maxEntryBytes is what an entry of commands of MaxCommandBytes, or of many small ones, has at most. A larger one may fit the
	// frame in which a node sends it to the leader, and none to the followers: nothing would be committed any more.
	maxEntryBytes = MaxCommandBytes + 8<<20
)

// commandsIn returns how many commands an entry of a normal kind says that it has,
// if it is a batch. It reads nothing else.
func commandsIn(data []byte) (count uint64) {
	if len(data) == 0 || data[0] != kindBatch {
		return 0
	}
	rest := data[1:]
	for range 5 { // the id's three numbers, the floor, the count
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return 0
		}
		count, rest = v, rest[n:]
	}
	return count
}

// changesIn returns how many changes an encoded pb.ConfChangeV2 has. It reads nothing
// else.
func changesIn(data []byte) (count int) {
	const changes = 2 // the field's number
	for len(data) > 0 {
		field, _, n := protowire.ConsumeField(data)
		if n < 0 {
			return count
		}
		if field == changes {
			count++
		}
		data = data[n:]
	}
	return count
}

// A configuration change carries its id in front of the user's context, as
// an envelope of one command.

func encodeConfContext(id wire.CommandID, floor uint64, context []byte) []byte {
	return encodeBatch(id, floor, [][]byte{context})
}

// decodeConfContext returns the envelope of a change, or false for a change
// that was made by other means and has no id.
func decodeConfContext(context []byte) (envelope, bool) {
	if len(context) == 0 || context[0] != kindSingle {
		return envelope{}, false
	}
	env, err := decodeEnvelope(context)
	return env, err == nil
}
