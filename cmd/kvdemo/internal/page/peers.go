// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Peer returns the source of a node that serves its reports at an HTTP address,
// host:port. Reports of other nodes are checked before they are used.
func Peer(id uint64, address string) Source {
	p := &peer{address: address, client: &http.Client{
		Transport: &http.Transport{MaxConnsPerHost: 4, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, Proxy: nil},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("it answers with a redirect, want a report: look whether the address is a kvdemo node's --http-listen")
		},
	}}
	return Source{ID: id, Read: p.read}
}

type peer struct {
	address string
	client  *http.Client
}

// unreached shortens the error of a request for a viewer.
func (p *peer) unreached(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer from %s within %v", p.address, askTimeout)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err
}

func (p *peer) read(ctx context.Context, ask Ask) (*Node, error) {
	address := fmt.Sprintf("http://%s/page/node?group=%d&upto=%d", p.address, ask.Group, ask.UpTo)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, p.unreached(err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is given up
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReport+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", p.address, err)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: %s: %s", p.address, resp.Status, Text(string(body)))
	case len(body) > maxReport:
		return nil, fmt.Errorf("%s: a report of more than %d bytes", p.address, maxReport)
	}
	n := new(Node)
	if err := json.Unmarshal(body, n); err != nil {
		return nil, fmt.Errorf("%s: no report: %w", p.address, err)
	}
	return n, nil
}
