// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package weft

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A group is out of service at a node for good, also after a restart, if its state differs from that
// of the majority, or if its log has lost what the node has acknowledged: a later leader knows nothing
// of the loss. A file in the node's directory says so.

// outOf are the reasons for being out of service, with the names of their files and what else may help.
var outOf = []struct {
	reason       error
	file, unless string
}{
	{ErrDiffers, "differs-%d", "; if this state is right all the same, remove the file %s"},
	{ErrLogLost, "log-lost-%d", ""}, // nothing helps: votes may be lost, too
}

// putOut notes, durably, that the group is out of service here.
func (g *Group) putOut(reason, why error) error {
	for _, out := range outOf {
		if out.reason == reason { //nolint:errorlint // one of the list, not wrapped
			return replaceFile(g.outPath(out.file), []byte(why.Error()))
		}
	}
	return fmt.Errorf("no file is known for %w", reason)
}

func (g *Group) outPath(file string) string {
	return filepath.Join(g.node.options.Dir, fmt.Sprintf(file, g.id))
}

// outOfService returns why the group is out of service here, or nil.
func (g *Group) outOfService() error {
	for _, out := range outOf {
		path := g.outPath(out.file)
		why, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look whether group %d is out of service: %w", g.id, err)
		}
		unless := out.unless
		if unless != "" {
			unless = fmt.Sprintf(unless, path)
		}
		return fmt.Errorf("%w: group %d at node %d: %s: start a node with an id that was never used and an empty directory, and put it in the place of this one with Group.Replace%s", out.reason, g.id, g.node.options.ID, why, unless)
	}
	return nil
}

// noteLoss takes the reason for which the host has ended. The host counts as ended when the note of a
// lost log is durable.
func (g *Group) noteLoss(reason error) {
	if !errors.Is(reason, ErrLogLost) {
		return
	}
	if err := g.putOut(ErrLogLost, reason); err != nil {
		g.node.options.Logger.Error("that the log was lost is not noted: do not start this node again", "group", g.id, "node", g.node.options.ID, "error", err)
	}
}
