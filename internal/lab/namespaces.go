// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
)

// A network of namespaces has a switch, in a namespace of its own, with two
// bridges: the cards of all hosts are plugged into the first, and what this
// process reaches the hosts by into the second.
//
//	host 1: card ──shaped──┐                ┌── client ── host 1
//	host 2: card ──shaped──┤ peers  clients ├── client ── host 2
//	host 3: card ──shaped──┘                ├── client ── host 3
//	                                        └── this process
type namespaces struct {
	prefix string // of the names of all namespaces
	uplink string // the interface of this process
	names  []string
	subnet int // of both networks, the third byte of an address
}

// Networks for measurements, which no machine has in earnest (RFC 2544).
const (
	cardNet   = "198.18"
	clientNet = "198.19"
	// self is the last byte of this process's address.
	self       = 254
	cardPort   = 2380
	clientPort = 2379
)

var networks atomic.Int64

func newNamespaces(c NetworkConfig) (*Network, error) {
	removeStale()
	subnet, err := freeSubnet()
	if err != nil {
		return nil, err
	}
	number := networks.Add(1)
	s := &namespaces{
		prefix: fmt.Sprintf("weftlab-%d-%d-", os.Getpid(), number),
		uplink: fmt.Sprintf("wl%d-%d", os.Getpid(), number),
		subnet: subnet,
	}
	if err := s.build(c); err != nil {
		return nil, fmt.Errorf("network: network of namespaces (it needs Linux, root, ip and tc): %w", errors.Join(err, s.close()))
	}
	n := &Network{Kind: Namespaces, close: s.close}
	for i := range c.Hosts {
		card := fmt.Sprintf("%s.%d.%d:%d", cardNet, subnet, i+1, cardPort)
		n.Hosts = append(n.Hosts, Host{
			Listen: card, Address: card,
			Client: fmt.Sprintf("%s.%d.%d:%d", clientNet, subnet, i+1, clientPort),
			run:    []string{"ip", "netns", "exec", s.host(i)},
			sent:   func() (uint64, error) { return sentBy(s.host(i)) },
		})
	}
	return n, nil
}

func (s *namespaces) host(i int) string { return s.prefix + strconv.Itoa(i+1) }

func (s *namespaces) build(c NetworkConfig) error {
	center := s.prefix + "switch"
	if err := s.namespace(center); err != nil {
		return err
	}
	commands := []string{
		"ip -n SWITCH link add peers type bridge",
		"ip -n SWITCH link add clients type bridge",
		"ip -n SWITCH link set peers up",
		"ip -n SWITCH link set clients up",
		"ip link add " + s.uplink + " type veth peer name uplink netns SWITCH",
		"ip -n SWITCH link set uplink master clients up",
		fmt.Sprintf("ip addr add %s.%d.%d/24 dev %s", clientNet, s.subnet, self, s.uplink),
		"ip link set " + s.uplink + " up",
	}
	for i := range c.Hosts {
		if err := s.namespace(s.host(i)); err != nil {
			return err
		}
		commands = append(commands, s.plug(i, c.Rate)...)
	}
	for _, line := range commands {
		if err := run(strings.ReplaceAll(line, "SWITCH", center)); err != nil {
			return err
		}
	}
	return nil
}

// plug returns what connects a host to the switch.
func (s *namespaces) plug(i int, rate int64) (commands []string) {
	add := func(format string, args ...any) {
		commands = append(commands, strings.ReplaceAll(fmt.Sprintf(format, args...), "HOST", s.host(i)))
	}
	add("ip -n HOST link set lo up")
	for _, link := range []struct{ name, bridge, net string }{{"card", "peers", cardNet}, {"client", "clients", clientNet}} {
		port := fmt.Sprintf("%s%d", link.name, i+1)
		add("ip link add %s netns HOST type veth peer name %s netns SWITCH", link.name, port)
		add("ip -n SWITCH link set %s master %s up", port, link.bridge)
		add("ip -n HOST addr add %s.%d.%d/24 dev %s", link.net, s.subnet, i+1, link.name)
		add("ip -n HOST link set %s up", link.name)
	}
	if rate > 0 {
		// Both ends of the cable: what the host sends, and what it receives.
		add("tc -n HOST qdisc add dev card root %s", bucket(rate))
		add("tc -n SWITCH qdisc add dev card%d root %s", i+1, bucket(rate))
	}
	return commands
}

// sentBy asks the kernel what the card of a host has sent.
func sentBy(host string) (uint64, error) {
	out, err := exec.Command("ip", "-n", host, "-json", "-stats", "link", "show", "dev", "card").Output()
	if err != nil {
		return 0, fmt.Errorf("network: statistics of %s: %w", host, err)
	}
	var links []struct {
		Stats64 struct{ Tx struct{ Bytes uint64 } }
	}
	if err := json.Unmarshal(out, &links); err != nil || len(links) != 1 {
		return 0, fmt.Errorf("network: statistics of %s: %q: %w", host, out, err)
	}
	return links[0].Stats64.Tx.Bytes, nil
}

const (
	// ahead is how much of a second the kernel's timer may be late without a loss
	// of rate: so much may leave at once after a pause.
	ahead = 4000
	// frame is the least that may.
	frame = 3200 // bytes
	// queue is what waits in front of a full link, as in a switch.
	queue = 256 << 10 // bytes
)

// bucket returns the kernel's words for a link of so many bits a second.
func bucket(rate int64) string {
	return fmt.Sprintf("tbf rate %dbit burst %d limit %d", rate, max(rate/8/ahead, frame), queue)
}

// namespace makes a namespace, which is deleted in the end.
func (s *namespaces) namespace(name string) error {
	if err := run("ip netns add " + name); err != nil {
		return err
	}
	s.names = append(s.names, name)
	return nil
}

// close deletes all namespaces. Interfaces go with them, and with an interface
// its other end, some time later: the one in this namespace is deleted first, so
// that its address is free.
func (s *namespaces) close() error {
	var errs []error
	if _, err := net.InterfaceByName(s.uplink); err == nil {
		errs = append(errs, run("ip link del "+s.uplink))
	}
	for _, name := range s.names {
		errs = append(errs, run("ip netns del "+name))
	}
	s.names = nil
	return errors.Join(errs...)
}

func run(line string) error {
	words := strings.Fields(line)
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(out)))
	}
	return nil
}

var ours = regexp.MustCompile(`(?m)^(weftlab-(\d+)-\S+)`)

// removeStale deletes what processes have left that were killed.
func removeStale() {
	list, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		return // whoever needs ip finds out
	}
	for _, m := range ours.FindAllStringSubmatch(string(list), -1) {
		if _, err := os.Stat("/proc/" + m[2]); errors.Is(err, os.ErrNotExist) {
			_ = run("ip netns del " + m[1]) // somebody else may have been faster
		}
	}
}

// freeSubnet returns one that no interface of this machine is in.
func freeSubnet() (int, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return 0, err
	}
	first := rand.IntN(256)
next:
	for i := range 256 {
		subnet := (first + i) % 256
		ip := net.ParseIP(fmt.Sprintf("%s.%d.%d", clientNet, subnet, self))
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.Contains(ip) {
				continue next
			}
		}
		return subnet, nil
	}
	return 0, fmt.Errorf("network: all of %s.0.0/16 is in use", clientNet)
}
