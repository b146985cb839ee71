// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package front

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weftraft/weft/internal/compare"
	"github.com/weftraft/weft/internal/files"
	"github.com/weftraft/weft/rawnode"
)

// Group is a group at a node, for what [Group.PutOut] notes.
//
// A group is out of service at a node for good, also after a restart, if its state differs from that
// of the majority, or if its log has lost what the node has acknowledged: a later leader knows nothing
// of the loss. A file in the node's directory says so.
type Group struct {
	Dir      string // of the node
	Node, ID uint64
}

// outOf are the reasons for being out of service, with the names of their files and what else may help. Behind a recovery
// it matters no more that a vote may be lost.
var outOf = []struct {
	reason       error
	file, unless string
}{
	{compare.ErrDiffers, "differs-%d", "; if this state is right all the same, remove the file %s"},
	{rawnode.ErrLogLost, "log-lost-%d", "; if all other members are lost for good, remove the file %s and call Recover"},
}

// PutOut notes, durably, that the group is out of service here.
func (g Group) PutOut(reason, why error) error {
	for _, out := range outOf {
		if out.reason == reason { //nolint:errorlint // one of the list, not wrapped
			return files.Replace(g.path(out.file), []byte(why.Error()))
		}
	}
	return fmt.Errorf("no file is known for %w", reason)
}

func (g Group) path(file string) string {
	return filepath.Join(g.Dir, fmt.Sprintf(file, g.ID))
}

// OutOfService returns why the group is out of service here, or nil.
func (g Group) OutOfService() error {
	for _, out := range outOf {
		path := g.path(out.file)
		why, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look whether group %d is out of service: %w", g.ID, err)
		}
		return fmt.Errorf("%w: group %d at node %d: %s: start a node with an id that was never used and an empty directory, and put it in the place of this one with Group.Replace%s", out.reason, g.ID, g.Node, why, fmt.Sprintf(out.unless, path))
	}
	return nil
}
