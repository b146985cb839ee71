// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package raft

import "errors"

// ErrMalformedMessage is wrapped by the errors of Step for messages no correct node
// sends. Such a message changes nothing except, at most, the term.
var ErrMalformedMessage = errors.New("raft: malformed message")

// ErrProposalDropped says that a proposal was not, and will not be, appended: there is
// no leader, or the leader cannot take the proposal now. Try again later, or elsewhere.
var ErrProposalDropped = errors.New("raft proposal dropped")
