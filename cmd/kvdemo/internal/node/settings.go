// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weftraft/weft/internal/files"
)

// settings are what a data directory is made with, beside what its log and its
// state know: how many groups there are, and whether the node was removed from
// its cluster.
type settings struct {
	Cluster, Node uint64
	Groups        int
	Removed       bool
}

const (
	settingsFile    = "SETTINGS"
	settingsVersion = 1
	// lostFile has, in a directory whose node has lost its log, what is to be done. A
	// node that is started again without it might meet a leader that knows nothing of
	// the loss.
	lostFile       = "LOST"
	settingsFormat = "kvdemo data, version %d\ncluster %d\nnode %d\ngroups %d\nremoved %t\n"
)

// errSettings wraps what is wrong with a data directory.
var errSettings = errors.New("the data directory cannot be used")

// checkSettings compares a data directory with the configuration, and makes a
// new one.
func checkSettings(cfg Config) error {
	s, err := readSettings(cfg.Data)
	want := settings{Cluster: cfg.Cluster, Node: cfg.ID, Groups: cfg.Groups}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newData(cfg.Data, want)
	case err != nil:
		return err
	case s.Cluster != cfg.Cluster || s.Node != cfg.ID:
		return fmt.Errorf("%w: %s belongs to cluster %d, node %d; this is cluster %d, node %d", errSettings, cfg.Data, s.Cluster, s.Node, cfg.Cluster, cfg.ID)
	case s.Removed:
		return fmt.Errorf("%w: node %d was removed from its cluster; start a new node, with an id and a directory of its own", errSettings, cfg.ID)
	case s.Groups != cfg.Groups:
		return fmt.Errorf("%w: %s was made with --groups %d, which cannot be changed to %d", errSettings, cfg.Data, s.Groups, cfg.Groups)
	}
	if lost, err := os.ReadFile(filepath.Join(cfg.Data, lostFile)); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%w: %s", errSettings, lost), err)
	}
	if _, err := os.Stat(logDir(cfg.Data)); err != nil {
		return fmt.Errorf("%w: %s has no log (%w): a node that lost its log has forgotten its promises; remove it from the cluster and add another", errSettings, cfg.Data, err)
	}
	return nil
}

func logDir(data string) string { return filepath.Join(data, "log") }

// newData makes a data directory, unless there is a log already: then it is of
// a version without settings, or somebody removed them.
func newData(dir string, s settings) error {
	if _, err := os.Stat(filepath.Join(logDir(dir), "IDENTITY")); err == nil {
		return fmt.Errorf("%w: %s has a log and no file %s: it was made by an older kvdemo, or is not complete; run the version that made it", errSettings, dir, settingsFile)
	}
	if err := os.MkdirAll(logDir(dir), 0o755); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	return s.write(dir)
}

// readSettings reads the settings of a data directory.
func readSettings(dir string) (s settings, err error) {
	path := filepath.Join(dir, settingsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	var version int
	if _, err := fmt.Sscanf(string(text), settingsFormat[:len("kvdemo data, version %d\n")], &version); err == nil && version != settingsVersion {
		return s, fmt.Errorf("%w: %s has version %d, this kvdemo reads %d; run the version that made it", errSettings, path, version, settingsVersion)
	}
	_, err = fmt.Sscanf(string(text), settingsFormat, &version, &s.Cluster, &s.Node, &s.Groups, &s.Removed)
	if err != nil || s.text() != string(text) {
		return s, fmt.Errorf("%w: %s is damaged: restore the directory from a copy, or replace the node", errSettings, path)
	}
	return s, nil
}

func (s settings) text() string {
	return fmt.Sprintf(settingsFormat, settingsVersion, s.Cluster, s.Node, s.Groups, s.Removed)
}

// write replaces the settings of a data directory, durably and in one step.
func (s settings) write(dir string) error {
	if err := files.Replace(filepath.Join(dir, settingsFile), []byte(s.text())); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}
