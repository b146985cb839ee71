// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/internal/replica"
	"github.com/weftraft/weft/internal/survivor"
	"github.com/weftraft/weft/storage"
)

// Survivor is what the data directory of a stopped node has, without the other members: the way
// back after a majority of them is lost. All that is in the log counts, acknowledged by a majority
// or not. The directory stays as it is: the log is applied to a copy of the state. Close it.
type Survivor struct {
	Cluster, Node uint64
	Groups        []SurvivingGroup // group 1 first

	copied string
	db     *kv.DB
}

// SurvivingGroup is one group of a survivor. Of two survivors the one with the higher Term has more;
// with equal terms, the one with the higher Index.
type SurvivingGroup struct {
	Term, Index uint64 // of the log's last entry, or of the state if it is ahead of the log
	// Left is how many entries at the end of the log are not in Export, which is with incomplete
	// only: the node has units of a coded entry's payload, and the other members had the rest.
	Left   uint64
	Export *kv.Export
}

// OpenSurvivor opens the directory data, and copies the state to a new directory in scratch. Without
// incomplete, a coded entry that the node cannot decode alone is an error.
func OpenSurvivor(ctx context.Context, data, scratch string, incomplete bool) (s *Survivor, err error) {
	found, err := readSettings(data)
	if err != nil {
		return nil, err
	}
	s = &Survivor{Cluster: found.Cluster, Node: found.Node}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if _, err := os.Stat(logDir(data)); err != nil { // a new log would hide the loss from the next start of the node
		return s, fmt.Errorf("%w: %s has no log, so nothing survived: %w", errSettings, data, err)
	}
	engine, err := storage.Open(logDir(data), storage.Options{Identity: storage.Identity{Cluster: s.Cluster, Node: s.Node}, Begun: true})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if ids := engine.Groups(); len(ids) > 0 && ids[len(ids)-1] > uint64(found.Groups) { // and the backup would lack it
		return s, fmt.Errorf("%w: %s says that there are %d groups, and the log has group %d: restore the file from a copy", errSettings, filepath.Join(data, settingsFile), found.Groups, ids[len(ids)-1])
	}
	if s.copied, err = os.MkdirTemp(scratch, ".kvdemo-survivor-"); err != nil {
		return s, err
	}
	if err := os.CopyFS(s.copied, os.DirFS(filepath.Join(data, "state"))); err != nil {
		return s, fmt.Errorf("copy the state: %w", err)
	}
	if s.db, err = kv.Open(s.copied, kv.Identity{Cluster: s.Cluster, Node: s.Node}, kv.Options{}); err != nil {
		return s, err
	}
	for id := range uint64(found.Groups) {
		g, err := s.group(ctx, engine, id+1, incomplete)
		if err != nil {
			return s, fmt.Errorf("group %d: %w", id+1, err)
		}
		s.Groups = append(s.Groups, g)
	}
	return s, nil
}

// group applies what the log of a group has, and opens the state.
func (s *Survivor) group(ctx context.Context, engine *storage.Engine, id uint64, incomplete bool) (g SurvivingGroup, err error) {
	log, err := engine.Group(id)
	if err != nil {
		return g, err
	}
	store, err := s.db.Group(id)
	if err != nil {
		return g, err
	}
	applied, host, err := store.Load()
	if err == nil {
		g.Index, err = log.LastIndex()
	}
	if err == nil {
		g.Term, err = log.Term(g.Index)
	}
	if err != nil {
		return g, err
	}
	tail, err := replica.NewLogTail(log, applied, host, 0)
	if err == nil {
		if index, term, ok := tail.Ahead(); ok {
			g.Index, g.Term = index, term
		}
	}
	if errors.Is(err, replica.ErrCodedTail) {
		last, _ := tail.Last()
		if g.Left = g.Index - last; !incomplete {
			return g, fmt.Errorf("%w; try the other survivors first, or --incomplete, which leaves out the last %d entries of this log", err, g.Left)
		}
		err = nil
	}
	if err == nil {
		err = s.apply(ctx, id, tail, store)
	}
	if err == nil {
		g.Export, err = store.Export()
	}
	return g, err
}

func (s *Survivor) apply(ctx context.Context, id uint64, tail *replica.LogTail, store *kv.Store) error {
	host, err := survivor.Start(s.Node, id, tail, store, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(survivor.AwaitApplied(ctx, host, tail), host.Stop(ctx))
}

// Close closes the states and removes their copy.
func (s *Survivor) Close() error {
	var errs []error
	for _, g := range s.Groups {
		errs = append(errs, g.Export.Close())
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.copied != "" {
		errs = append(errs, os.RemoveAll(s.copied))
	}
	return errors.Join(errs...)
}
