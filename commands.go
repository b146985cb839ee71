// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"encoding/json"
	"fmt"

	"github.com/weftraft/weft/internal/marked"
)

// A few commands in the log are the front's own, and begin with a mark. [Group.Propose] refuses
// a user's command with the mark. All other commands are in the log as proposed, so that the front
// opens a log of package rawnode.
//
//	mark   16 bytes
//	kind   1 byte
//	body   JSON
//
// A kind that this version does not know is left out: kinds say nothing about the
// user's state, so replicas with and without the kind stay equal.
const (
	commandMark = marked.Mark

	commandFacts  byte = 1 // body: facts
	commandCheck  byte = 2 // body: compare.Check
	commandDigest byte = 3 // body: compare.Digest
)

// reserved reports whether a command is this package's own.
func reserved(command []byte) bool { return marked.Is(command) }

// ownCommand returns a command of this package.
func ownCommand(kind byte, body []byte) []byte {
	return append(append([]byte(commandMark), kind), body...)
}

// ownParts takes a command of this package apart.
func ownParts(command []byte) (kind byte, body []byte) {
	return command[len(commandMark)], command[len(commandMark)+1:]
}

// encodeFacts returns the command that tells a group facts.
func encodeFacts(f facts) ([]byte, error) {
	body, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode facts: %w", err)
	}
	return ownCommand(commandFacts, body), nil
}

// decodeFacts reads a command of this package. It returns no facts for another kind, or for a
// body that this version does not take.
func decodeFacts(command []byte) (facts, error) {
	f := facts{}
	kind, body := ownParts(command)
	if kind != commandFacts {
		return f, fmt.Errorf("kind %d is not known to this version", kind)
	}
	if err := json.Unmarshal(body, &f); err != nil {
		return facts{}, err
	}
	if err := f.check(); err != nil {
		return facts{}, err
	}
	return f, nil
}
