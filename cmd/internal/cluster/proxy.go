// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	"github.com/weftraft/weft/internal/lab"
)

// peerDomain is the domain of the names under which members of etcd know each other. No
// resolver knows the domain, because each member asks its own proxy.
const peerDomain = ".weftbench.invalid"

// peerURL is where a member is found by the others.
func peerURL(member int) string { return fmt.Sprintf("http://n%d%s:2380", member, peerDomain) }

// proxies carry requests between members of etcd over links with delays. A relay in front of a
// member could not tell which member connects, and all members must know a member by one
// address. Therefore each member has an HTTP proxy of its own, in its environment: the proxy
// tells the sender, and the name tells the receiver.
type proxies struct {
	listeners []net.Listener
	servers   []*http.Server
}

// startProxies starts a proxy for each member.
func startProxies(links *lab.Links, members int) (*proxies, error) {
	p := &proxies{}
	for from := 1; from <= members; from++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		s := &http.Server{Handler: proxyOf(links, from, members), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
		p.listeners, p.servers = append(p.listeners, l), append(p.servers, s)
		go func() { _ = s.Serve(l) }() // until close
	}
	return p, nil
}

// url returns the address of a member's proxy.
func (p *proxies) url(member int) string { return "http://" + p.listeners[member-1].Addr().String() }

func (p *proxies) close() (err error) {
	for _, s := range p.servers {
		err = errors.Join(err, s.Close())
	}
	return err
}

// proxyOf returns the proxy of one member. Streams are passed on as they come.
func proxyOf(links *lab.Links, from, members int) http.Handler {
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		to, err := memberOf(address, members)
		if err != nil {
			return nil, err
		}
		return links.Dial(ctx, from, to)
	}
	return &httputil.ReverseProxy{
		Rewrite:       func(*httputil.ProxyRequest) {}, // the request names its host in full
		Transport:     &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 64, DisableCompression: true},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
}

// memberOf returns the member that an address names.
func memberOf(address string, members int) (int, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	name, ok := strings.CutSuffix(strings.TrimPrefix(host, "n"), peerDomain)
	id, err := strconv.Atoi(name)
	if !ok || err != nil || id < 1 || id > members {
		return 0, fmt.Errorf("host %q, want n1%s to n%d%[2]s", host, peerDomain, members)
	}
	return id, nil
}
