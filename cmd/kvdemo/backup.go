// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/weftraft/weft/cmd/kvdemo/internal/backup"
	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
	"github.com/weftraft/weft/cmd/kvdemo/internal/node"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
	"github.com/weftraft/weft/internal/files"
)

const (
	// backupTimeout is the default of --timeout for backup and restore.
	backupTimeout = time.Hour
	// restoreWrites is how many keys are put at a time.
	restoreWrites = 32
)

// Results of backup and restore, as --json prints them.
type (
	backupResult struct {
		File    string `json:"file"`
		Keys    uint64 `json:"keys"`
		Bytes   int64  `json:"bytes"` // of the file
		Cluster uint64 `json:"cluster"`

		Ends []endResult `json:"ends,omitempty"` // with --data: of each group's log
	}
	// endResult is where the log of a survivor's group ends.
	endResult struct {
		Term  uint64 `json:"term"`
		Index uint64 `json:"index"`
		Left  uint64 `json:"left,omitempty"` // entries that are not in the backup
	}
	restoreResult struct {
		File    string `json:"file"`
		Keys    uint64 `json:"keys"`
		Expired uint64 `json:"expired"` // keys whose deadline has passed: they were left out
	}
)

func (r backupResult) String() string {
	text := fmt.Sprintf("%d keys of cluster %d in %s (%d bytes)", r.Keys, r.Cluster, printable(r.File), r.Bytes)
	for i, end := range r.Ends {
		text += fmt.Sprintf("\ngroup %d: the log ends at term %d, index %d", i+1, end.Term, end.Index)
		if end.Left > 0 {
			text += fmt.Sprintf("; the last %d entries are not in the backup", end.Left)
		}
	}
	return text
}

func (r restoreResult) String() string {
	text := fmt.Sprintf("%d keys restored from %s, and compared", r.Keys, printable(r.File))
	if r.Expired > 0 {
		text += fmt.Sprintf("; %d were left out because their deadlines have passed", r.Expired)
	}
	return text
}

func newBackup() *cobra.Command {
	f := clientFlags{timeout: backupTimeout}
	var data string
	var incomplete bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all keys and values, as of one moment, to a file",
		Long: "backup writes all keys, values and deadlines to a file, as they are at one moment while the\n" +
			"command runs: each write that was acknowledged before is in it. The file is there only when\n" +
			"it is complete. Clients go on; with several groups their writes wait for a moment. With\n" +
			"certificates, an administrator's is needed. A file that has the name already is replaced.\n\n" +
			"With --data the backup is made from the directory of a node that does not run, without the\n" +
			"others: the way back after a majority is lost for good. It has all that the node's log has,\n" +
			"and nothing that was acknowledged without this node and had not reached it. Nothing in the\n" +
			"directory is changed. Make one of each survivor, and restore that whose log ends at the\n" +
			"highest term, and of these the highest index, into a new cluster, with a number of its own.",
		Example: "  kvdemo backup monday.backup\n" +
			"  kvdemo backup survivor.backup --data /var/lib/kvdemo",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if data != "" {
				ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
				defer cancel()
				r, err := backupSurvivor(ctx, data, incomplete, args[0])
				if err != nil {
					return fmt.Errorf("--data %s: %w", data, err)
				}
				return f.print(cmd, r)
			}
			return f.with(cmd, func(ctx context.Context, c *client.Client) error {
				r, err := backupTo(ctx, c, args[0])
				if err != nil {
					return err
				}
				return f.print(cmd, r)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&data, "data", "", "the data directory of a node that does not run: read it, and ask nobody")
	cmd.Flags().BoolVar(&incomplete, "incomplete", false, "with --data, leave out the end of a log that the node cannot read without the others")
	return cmd
}

// backupTo writes what the nodes have to a file.
func backupTo(ctx context.Context, c *client.Client, file string) (backupResult, error) {
	return backupWith(file, func(f *os.File, r *backupResult) error { return fillBackup(ctx, c, f, r) })
}

// backupSurvivor writes what the directory of a stopped node has to a file.
func backupSurvivor(ctx context.Context, data string, incomplete bool, file string) (backupResult, error) {
	s, err := node.OpenSurvivor(ctx, data, filepath.Dir(file), incomplete)
	if err != nil {
		return backupResult{}, err
	}
	r, err := backupWith(file, func(f *os.File, r *backupResult) error { return fillFromSurvivor(s, f, r) })
	return r, errors.Join(err, s.Close())
}

// fillFromSurvivor writes all groups of a survivor.
func fillFromSurvivor(s *node.Survivor, f *os.File, r *backupResult) error {
	h := backup.Header{Cluster: s.Cluster, Made: time.Now().UTC()}
	r.Cluster = s.Cluster
	for _, g := range s.Groups {
		h.Groups = append(h.Groups, g.Export.Revision)
		r.Ends = append(r.Ends, endResult{g.Term, g.Index, g.Left})
	}
	w, err := backup.NewWriter(f, h)
	for _, g := range s.Groups {
		if err == nil {
			err = g.Export.Each(func(x *kv.Exported) error { return writeExported(w, x) })
		}
	}
	if err == nil {
		r.Keys, err = w.Close()
	}
	return err
}

// writeExported writes a key and its value.
func writeExported(w *backup.Writer, x *kv.Exported) error {
	err := w.Begin(backup.Entry{Key: x.Key, Size: x.Size, Deadline: x.Deadline, Type: max(x.Type, kv.TypeString)})
	for err == nil {
		var piece []byte
		if piece, err = x.Next(); err == nil {
			_, err = w.Write(piece)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// backupWith writes a backup to a file that appears when it is complete and durable.
func backupWith(file string, fill func(*os.File, *backupResult) error) (backupResult, error) {
	r := backupResult{File: file}
	err := createWhole(file, func(f *os.File) error {
		err := fill(f, &r)
		if err == nil {
			r.Bytes, err = f.Seek(0, io.SeekEnd)
		}
		if err == nil {
			err = f.Sync()
		}
		return err
	})
	if err != nil {
		return r, err
	}
	return r, files.SyncDir(filepath.Dir(file))
}

// fillBackup writes what a node sends, and begins anew if another node does.
func fillBackup(ctx context.Context, c *client.Client, f *os.File, r *backupResult) error {
	var w *backup.Writer
	begin := func() error {
		w = nil
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return f.Truncate(0)
	}
	err := c.Backup(ctx, begin, func(chunk *kvpb.BackupChunk) (err error) {
		if w == nil {
			h := backup.Header{Cluster: chunk.GetCluster(), Made: time.Now().UTC()}
			for _, p := range chunk.GetPositions() {
				h.Groups = append(h.Groups, p.GetRevision())
			}
			r.Cluster = h.Cluster
			w, err = backup.NewWriter(f, h)
			return err
		}
		if chunk.GetKey() != "" {
			var e backup.Entry
			if e, err = entryOf(chunk); err == nil {
				err = w.Begin(e)
			}
		}
		if err == nil {
			_, err = w.Write(chunk.GetData())
		}
		return err
	})
	if err != nil {
		return err
	}
	if w == nil {
		return errors.New("the node ended the backup before it began")
	}
	r.Keys, err = w.Close()
	return err
}

// entryOf returns the entry that a chunk begins.
func entryOf(chunk *kvpb.BackupChunk) (backup.Entry, error) {
	e := backup.Entry{Key: chunk.GetKey(), Size: int64(chunk.GetSize()), Deadline: chunk.GetDeadlineMs(), Type: kv.TypeString}
	switch chunk.GetType() {
	case "":
	case kv.TypeHash.String():
		e.Type = kv.TypeHash
	case kv.TypeSortedSet.String():
		e.Type = kv.TypeSortedSet
	default:
		return e, fmt.Errorf("key %s is of type %s, which this kvdemo does not know: use the kvdemo of the node", printable(e.Key), printable(chunk.GetType()))
	}
	return e, nil
}

func newRestore() *cobra.Command {
	f := clientFlags{timeout: backupTimeout}
	var force bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put the keys and values of a backup into a new cluster",
		Long: "restore puts the keys of a backup into a cluster, which may have another number of nodes and\n" +
			"groups than the one that the backup is of, and must have no keys. The file is checked as a\n" +
			"whole before, and all values are compared at the end. A restore that was cut short is begun\n" +
			"again with --force, which also removes keys that the file has and whose deadlines have passed.",
		Example: "  kvdemo restore monday.backup --endpoints 10.0.0.7:7300",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&force, "force", false, "put the keys into a cluster that has keys, over those of the same names")
	return f.runs(cmd, func(ctx context.Context, c *client.Client, args []string) error {
		r, err := restoreFrom(ctx, c, args[0], force)
		if err != nil {
			return err
		}
		return f.print(cmd, r)
	})
}

// restoreFrom puts the keys of a backup into a cluster.
func restoreFrom(ctx context.Context, c *client.Client, file string, force bool) (r restoreResult, err error) {
	r.File = file
	f, err := os.Open(file)
	if err != nil {
		return r, err
	}
	defer func() { _ = f.Close() }() // it was only read
	if _, _, err := backup.Check(f); err != nil {
		return r, fmt.Errorf("%s: %w; nothing was restored", file, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return r, err
	}
	if !force {
		page, err := c.List(ctx, &kvpb.ListRequest{Limit: 1})
		if err != nil {
			return r, err
		}
		if items := page.GetItems(); len(items) > 0 {
			return r, fmt.Errorf("the cluster has keys, such as %s: restore into a new cluster, or use --force; %w", printable(items[0].GetKey()), errUsage)
		}
	}
	in, err := backup.NewReader(f)
	if err != nil {
		return r, err
	}
	x := restore{c: c, force: force, digests: map[string][sha256.Size]byte{}}
	x.writes, ctx = errgroup.WithContext(ctx)
	x.writes.SetLimit(restoreWrites)
	err = x.all(ctx, in)
	if w := x.writes.Wait(); w != nil {
		err = w // why the context ended
	}
	if err != nil {
		return r, fmt.Errorf("%w; the restore is not complete: run it again with --force", err)
	}
	r.Keys, r.Expired = x.keys, x.expired
	return r, nil
}

// restore is one under way.
type restore struct {
	c             *client.Client
	force         bool // there may be keys, for example of a restore that was cut short
	writes        *errgroup.Group
	digests       map[string][sha256.Size]byte // of the values without deadlines
	keys, expired uint64
}

// all puts all keys, and compares them.
func (x *restore) all(ctx context.Context, in *backup.Reader) error {
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = x.one(ctx, e, in)
		}
		if err != nil {
			return err
		}
	}
	if err := x.writes.Wait(); err != nil {
		return err
	}
	return x.compare(context.WithoutCancel(ctx))
}

// one puts a key. A value of more than 1 MiB goes while the file is read.
func (x *restore) one(ctx context.Context, e backup.Entry, in io.Reader) error {
	ttl, expired := left(e)
	if expired {
		x.expired++
		if x.force {
			x.writes.Go(func() error { return x.remove(ctx, e.Key) })
		}
		return nil
	}
	x.keys++
	digest := sha256.New()
	value := io.TeeReader(in, digest)
	if e.Type != kv.TypeString {
		_, _ = digest.Write([]byte{byte(e.Type)}) // a hash.Hash never fails; kv.Store.List says why
		return x.typed(ctx, e, ttl, value, digest)
	}
	if e.Size > kv.MaxInlineBytes {
		if _, err := x.c.PutFrom(ctx, e.Key, value, e.Size); err != nil {
			return err
		}
		if e.Deadline != 0 {
			return x.end(ctx, e)
		}
		x.digests[e.Key] = [sha256.Size]byte(digest.Sum(nil))
		return nil
	}
	b, err := io.ReadAll(value)
	if err != nil {
		return err
	}
	if ttl == 0 {
		x.digests[e.Key] = [sha256.Size]byte(digest.Sum(nil))
	}
	x.writes.Go(func() error {
		if ttl != 0 {
			_, err := x.c.PutTTL(ctx, e.Key, b, ttl)
			return err
		}
		_, err := x.c.Put(ctx, e.Key, b)
		return err
	})
	return nil
}

// left returns how many milliseconds a key has, 0 without a deadline, and whether the
// deadline has passed.
func left(e backup.Entry) (ttl uint64, expired bool) {
	if e.Deadline == 0 {
		return 0, false
	}
	ms := e.Deadline - time.Now().UnixMilli()
	return uint64(max(0, ms)), ms <= 0
}

// end sets the deadline of a value that was put, which took a while.
func (x *restore) end(ctx context.Context, e backup.Entry) error {
	ttl, expired := left(e)
	if expired {
		x.keys--
		x.expired++
		return x.remove(ctx, e.Key)
	}
	return x.c.Expire(ctx, e.Key, ttl)
}

func (x *restore) remove(ctx context.Context, key string) error {
	_, _, err := x.c.Delete(ctx, key)
	return err
}

// typed puts a hash or a sorted set, piece by piece. If the key is there, it is removed first.
func (x *restore) typed(ctx context.Context, e backup.Entry, ttl uint64, value io.Reader, digest hash.Hash) error {
	b, err := io.ReadAll(value)
	if err != nil {
		return err
	}
	if ttl == 0 {
		x.digests[e.Key] = [sha256.Size]byte(digest.Sum(nil))
	}
	pieces, err := piecesOf(e, b)
	if err != nil {
		return err
	}
	put := func() error {
		for i, piece := range pieces {
			add := &kvpb.Action{Kind: kvpb.Action_HASH_SET, Key: e.Key, Value: piece}
			if e.Type == kv.TypeSortedSet {
				add.Kind = kvpb.Action_SORTED_ADD
			}
			actions := []*kvpb.Action{add}
			if i == 0 {
				actions = []*kvpb.Action{{Kind: kvpb.Action_DELETE, Key: e.Key}, add}
			}
			if i == len(pieces)-1 && ttl != 0 {
				actions = append(actions, &kvpb.Action{Kind: kvpb.Action_DEADLINE, Key: e.Key, TtlMs: ttl})
			}
			if _, err := x.c.Txn(ctx, &kvpb.TxnRequest{Then: actions}); err != nil {
				return err
			}
		}
		return nil
	}
	if len(b) > kv.MaxInlineBytes { // one at a time, for memory
		return put()
	}
	x.writes.Go(put)
	return nil
}

// restorePiece is about how many bytes of a sorted set one transaction adds.
const restorePiece = 256 << 10

// piecesOf cuts the value of a sorted set between members. A hash is one piece.
func piecesOf(e backup.Entry, b []byte) (pieces [][]byte, err error) {
	if e.Type == kv.TypeHash {
		return [][]byte{b}, nil
	}
	var piece []byte
	list := kv.ScoredOf(b)
	for list.Next() {
		if piece = kv.AppendScored(piece, list.Score(), list.Member()); len(piece) > restorePiece {
			pieces, piece = append(pieces, piece), nil
		}
	}
	if len(piece) > 0 {
		pieces = append(pieces, piece)
	}
	return pieces, list.Err()
}

// compare reads what the cluster has, and compares it with what was put.
func (x *restore) compare(ctx context.Context) error {
	for after := ""; ; {
		page, err := x.c.List(ctx, &kvpb.ListRequest{After: after, Digests: true})
		if err != nil {
			return err
		}
		for _, item := range page.GetItems() {
			want, ok := x.digests[item.GetKey()]
			if ok && !bytes.Equal(want[:], item.GetSha256()) {
				return fmt.Errorf("key %s has another value than the backup: somebody else writes to the cluster", printable(item.GetKey()))
			}
			delete(x.digests, item.GetKey())
		}
		if after = page.GetNext(); after == "" {
			break
		}
	}
	for key := range x.digests {
		return fmt.Errorf("key %s is not there: somebody else writes to the cluster", printable(key))
	}
	return nil
}
