// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/kv"
)

// sample returns a backup, and its values by key.
func sample(t require.TestingT) ([]byte, map[string]string) {
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{Cluster: 7, Made: time.Unix(5, 0).UTC(), Groups: []uint64{3, 4}})
	require.NoError(t, err)
	values := map[string]string{}
	for i := range 4 {
		key := fmt.Sprint("key", i)
		values[key] = string(bytes.Repeat([]byte{byte(i)}, i*50))
		require.NoError(t, w.Begin(Entry{Key: key, Size: int64(i * 50), Deadline: int64(i), Type: kv.Type(1 + i%3)}))
		for _, piece := range []string{values[key][:i], values[key][i:]} {
			_, err := io.WriteString(w, piece)
			require.NoError(t, err)
		}
	}
	n, err := w.Close()
	require.NoError(t, err)
	require.EqualValues(t, 4, n)
	return b.Bytes(), values
}

func TestBackupIsReadAsWritten(t *testing.T) {
	b, values := sample(t)
	r, err := NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	require.Equal(t, Header{Cluster: 7, Made: time.Unix(5, 0).UTC(), Groups: []uint64{3, 4}}, r.Header)
	for i := range 4 {
		e, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, Entry{fmt.Sprint("key", i), int64(i * 50), int64(i), kv.Type(1 + i%3)}, e)
		if i == 2 {
			continue // Next reads past it
		}
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, values[e.Key], string(got))
	}
	for range 2 {
		_, err = r.Next()
		require.ErrorIs(t, err, io.EOF)
	}
}

func TestEachDamagedByteIsNoticed(t *testing.T) {
	good, _ := sample(t)
	_, n, err := Check(bytes.NewReader(good))
	require.NoError(t, err)
	require.EqualValues(t, 4, n)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 4
		_, _, err := Check(bytes.NewReader(bad))
		require.True(t, errors.Is(err, errDamaged) || i == len(magic) && errors.Is(err, errVersion), "byte %d: %v", i, err)
		_, _, err = Check(bytes.NewReader(good[:i]))
		require.ErrorIs(t, err, errDamaged, "%d bytes", i)
	}
	_, _, err = Check(bytes.NewReader(append(bytes.Clone(good), 0)))
	require.ErrorContains(t, err, "bytes follow its end")
}

// A backup of version 1, which had no types but bytes, is read as before.
func TestVersion1IsRead(t *testing.T) {
	for kind, want := range map[kv.Type]error{kv.TypeString: nil, kv.TypeHash: errDamaged} {
		var b bytes.Buffer
		w, err := NewWriter(&b, Header{Cluster: 7})
		require.NoError(t, err)
		require.NoError(t, w.Begin(Entry{Key: "k", Size: 1, Type: kind}))
		_, err = w.Write([]byte("v"))
		require.NoError(t, err)
		_, err = w.Close()
		require.NoError(t, err)
		old := b.Bytes()
		old[len(magic)] = oldestVersion
		digest := sha256.Sum256(old[:len(old)-sha256.Size])
		copy(old[len(old)-sha256.Size:], digest[:])
		_, n, err := Check(bytes.NewReader(old))
		require.ErrorIs(t, err, want)
		require.EqualValues(t, 1, max(n, 1))
	}
	w, err := NewWriter(io.Discard, Header{})
	require.NoError(t, err)
	require.ErrorContains(t, w.Begin(Entry{Key: "k"}), "has the type 0, want 1 to 3")
}

func TestWriterWantsTheSizeThatWasSaid(t *testing.T) {
	w, err := NewWriter(io.Discard, Header{})
	require.NoError(t, err)
	require.NoError(t, w.Begin(Entry{Key: "k", Size: 2, Type: kv.TypeString}))
	_, err = w.Write([]byte("abc"))
	require.ErrorIs(t, err, errDamaged)
	w, err = NewWriter(io.Discard, Header{})
	require.NoError(t, err)
	require.NoError(t, w.Begin(Entry{Key: "k", Size: 2, Type: kv.TypeString}))
	_, err = w.Close()
	require.ErrorContains(t, err, "a value of 2 bytes less than was said")
}

// FuzzCheck: any bytes give an error or a backup, never a panic.
func FuzzCheck(f *testing.F) {
	good, _ := sample(f)
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, err := Check(bytes.NewReader(b)); err != nil {
			require.True(t, errors.Is(err, errDamaged) || errors.Is(err, errVersion), err)
		}
	})
}
