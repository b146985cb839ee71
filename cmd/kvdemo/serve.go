// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weftraft/weft/cmd/internal/nodes"
	"github.com/weftraft/weft/cmd/kvdemo/internal/logs"
	"github.com/weftraft/weft/cmd/kvdemo/internal/node"
	"github.com/weftraft/weft/cmd/kvdemo/internal/page"
	"github.com/weftraft/weft/raft"
	"github.com/weftraft/weft/rawnode"
)

// entranceFlags are flags of serve and gateway that need further reading.
type entranceFlags struct {
	cfg          node.Config
	peers        string
	passwordFile string
	logFormat    string
	logLevel     string
}

// serveFlags are those of serve.
type serveFlags struct {
	entranceFlags
	httpPeers     string
	weight        uint
	exitWithStdin bool
	orders        bool
}

func newServe() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run one node, until SIGTERM or SIGINT",
		Long: "serve runs one node. All first nodes of a cluster are given the same --cluster, --peers and\n" +
			"--groups. One that comes later is started with --join and the members there are then, and\n" +
			"added with: kvdemo member add. A data directory belongs to one node; a node whose\n" +
			"directory got lost must not come back under its old id. SIGHUP, as of a terminal that is\n" +
			"closed, does not end a node; the files of certificates are read again as they change.\n\n" +
			"Each flag can be a line in the file of --config, or in the environment, such as\n" +
			"WEFT_KVDEMO_CLIENT_LISTEN.",
		Example: "  kvdemo serve --id 1 --peers 1=10.0.0.1:7200,2=10.0.0.2:7200,3=10.0.0.3:7200 \\\n" +
			"    --client-listen 10.0.0.1:7300 --data /var/lib/kvdemo \\\n" +
			"    --tls-cert node-1.pem --tls-key node-1-key.pem --tls-ca ca.pem",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.config(cmd.ErrOrStderr())
			if err != nil {
				return fmt.Errorf("%w; %w", err, errUsage)
			}
			signal.Ignore(syscall.SIGHUP)
			ctx, outer := cmd.Context(), cmd.Context()
			switch {
			case f.orders:
				orders := make(chan page.Order)
				cfg.Orders = orders
				ctx = nodes.Until(ctx, func() error {
					return node.ReadOrders(outer, cmd.InOrStdin(), orders, func(err error) { cfg.Log.Warn("order refused", "error", err) })
				})
			case f.exitWithStdin:
				ctx = nodes.UntilEOF(ctx, cmd.InOrStdin())
			}
			return node.Run(ctx, cfg)
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&f.cfg.ID, "id", 0, "this node, one of --peers")
	flags.Uint64Var(&f.cfg.Cluster, "cluster", 1, "number of the cluster, 1 or more, the same at all nodes")
	flags.StringVar(&f.peers, "peers", "", "the members, this one too, and where they listen for each other, id=host:port,...")
	flags.StringVar(&f.cfg.Listen, "listen", "", "where to listen for peers (default: this node's address in --peers)")
	f.add(flags)
	flags.BoolVar(&f.cfg.Join, "join", false, "this node is new in a cluster that runs: wait for member add")
	flags.IntVar(&f.cfg.Groups, "groups", 1, fmt.Sprintf("Raft groups that share the keys, 1 to %d, the same at all nodes and at each start", node.MaxGroups))
	flags.StringVar(&f.cfg.HTTPListen, "http-listen", "", "where to serve /metrics, /livez, /readyz and a page to watch, /page/, over HTTP (default: nowhere)")
	flags.StringVar(&f.httpPeers, "http-peers", "", "the --http-listen of the nodes, id=host:port,...: the page shows them, too")
	flags.StringVar(&f.cfg.Data, "data", "", "directory of this node's data, made if there is none")
	addTLS(cmd, &f.cfg.TLS, "peers and clients need certificates of the same authority then", false)
	addTuning(cmd, &f.cfg)
	addLeases(cmd, &f.cfg)
	flags.Int64Var(&f.cfg.CatchUpBytes, "catch-up-bytes", 0, "bytes of snapshots and missed entries under way, 1 or more, of all groups, in each direction; the most urgent go first (default: 64 MiB)")
	flags.Uint64Var(&f.cfg.RetainBytes, "retain-bytes", node.DefaultRetainBytes, "bytes of log to keep for followers that lag, 1 or more; one that lags more gets a snapshot")
	flags.DurationVar(&f.cfg.FlushInterval, "flush-interval", node.DefaultFlushInterval, "how often an idle node makes its state durable, more than 0")
	flags.DurationVar(&f.cfg.ExitAfterHang, "exit-after-hang", 0, "end the process when no write to the log has ended for so long although some wait: a supervisor can move the node; 1m is usual, 1ms the least (0: never)")
	flags.DurationVar(&f.cfg.BalanceInterval, "balance-interval", node.DefaultBalanceInterval, "how often a node with several groups hands over some if it leads too many, 1ms or more (0: never)")
	flags.UintVar(&f.weight, "leader-weight", rawnode.DefaultLeaderWeight, "how much rather this node leads than others, 0 to 1000; 0: only if no other can; kvdemo leader-weight changes it while the node runs")
	flags.StringVar((*string)(&f.cfg.StuckDisk), "stuck-disk", "", "a file, for experiments: while it exists and is empty, what this node writes to --data waits, as on a disk that is stuck; while it holds a time, such as 20ms, each sync takes so much longer (default: none)")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error; kvdemo log-level changes it while the node runs")
	flags.BoolVar(&f.exitWithStdin, "exit-with-stdin", false, "stop when standard input ends: for a parent process")
	flags.BoolVar(&f.orders, "orders", false, "stop when standard input ends, and take orders from its lines: for the demo")
	flags.StringVar(&f.cfg.Zone, "zone", "", "where this node stands, such as a data centre, in at most 64 bytes: a leader sends whole entries once into each other zone, and a member there passes them on (default: not said)")
	_ = flags.MarkHidden("orders") // there is such a flag
	addSettings(cmd)
	return cmd
}

// addTuning adds the flags for a node's work, not for its identity. The defaults give
// elections within half a second to a second of silence.
func addTuning(cmd *cobra.Command, cfg *node.Config) {
	flags := cmd.Flags()
	flags.StringVar(&cfg.Core, "core", node.CoreWeft, fmt.Sprintf("the Raft library that drives the node: %s or %s (go.etcd.io/raft)", node.CoreWeft, node.CoreUpstream))
	flags.StringVar(&cfg.Coding, "coding", node.CodingAuto, fmt.Sprintf("send each member only what it needs of large entries: %s; %s; %s, if this node cannot read such entries either; or %s, which is on with --core %s",
		node.CodingOn, node.CodingOff, node.CodingNever, node.CodingAuto, node.CoreWeft))
	flags.IntVar(&cfg.CodingThreshold, "coding-threshold", raft.DefaultCodingThreshold, fmt.Sprintf("bytes of an entry from which it is coded, to %d", node.MaxCodingThreshold))
	flags.IntVar(&cfg.Egress, "egress", 0, fmt.Sprintf("bytes a second that the node sends to its peers at most, %d to %d, for experiments (0: no bound)", node.MinEgress, node.MaxEgress))
	flags.DurationVar(&cfg.Tick, "tick", 50*time.Millisecond, fmt.Sprintf("the unit of --heartbeat-ticks and --election-ticks, %v to %v", node.MinTick, node.MaxTick))
	flags.IntVar(&cfg.HeartbeatTicks, "heartbeat-ticks", 1, "ticks between heartbeats of a leader, 1 or more")
	flags.IntVar(&cfg.ElectionTicks, "election-ticks", 10, fmt.Sprintf("ticks of silence before an election, more than --heartbeat-ticks, to %d; a follower whose connection to the leader did not break waits up to twice that", node.MaxElectionTicks))
}

// addLeases adds the flags of roster leases. Clocks are what a user has to answer for.
func addLeases(cmd *cobra.Command, cfg *node.Config) {
	flags := cmd.Flags()
	flags.BoolVar(&cfg.Leases, "leases", false, "roster leases: nodes named with kvdemo roster answer linearizable reads from their own state. All nodes should have them. They count on clocks that run within 1000 ppm of real time at all nodes, and go on while the machine sleeps; processes may pause. Leave them off where a virtual machine is paused or migrated together with its clock")
	flags.BoolVar(&cfg.LeaseNotes, "lease-notes", false, "with --leases, nodes tell responders what they hold, so that a read waits less for a write of its key; the same at all nodes")
	flags.BoolVar(&cfg.LeaseTuner, "lease-tuner", false, "with --leases, let leaders choose responders by where keys are read, beside those named with kvdemo roster; the same at all nodes")
}

// config reads the flags other than numbers and checks all flags.
func (f *serveFlags) config(errOut io.Writer) (node.Config, error) {
	var errs []error
	cfg, err := f.read(errOut)
	errs = append(errs, err)
	if f.httpPeers != "" {
		cfg.HTTPPeers, err = nodes.ParsePeers("http-peers", f.httpPeers)
		errs = append(errs, err)
	}
	cfg.LeaderWeight = node.WeightSetting(uint64(f.weight))
	return cfg, errors.Join(append(errs, cfg.Validate())...)
}

// read reads the peers, the password and what is said of the log.
func (f *entranceFlags) read(errOut io.Writer) (node.Config, error) {
	var errs []error
	var err error
	cfg := f.cfg
	if f.peers != "" {
		cfg.Peers, err = nodes.ParsePeers("peers", f.peers)
		errs = append(errs, err)
	}
	if f.passwordFile != "" {
		cfg.RespPassword, err = readPassword(f.passwordFile)
		errs = append(errs, err)
	}
	cfg.Log, cfg.LogLevel, err = logs.New(errOut, f.logFormat, f.logLevel)
	return cfg, errors.Join(append(errs, err)...)
}

// maxPassword bounds the password of clients of Redis, in bytes.
const maxPassword = 512

// readPassword reads the one line of a file. The error does not show it.
func readPassword(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("--resp-password-file: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	b, err := io.ReadAll(io.LimitReader(f, maxPassword+3))
	if err != nil {
		return "", fmt.Errorf("--resp-password-file: %w", err)
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if n := len(password); n == 0 || n > maxPassword || !utf8.ValidString(password) || strings.ContainsFunc(password, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", fmt.Errorf("--resp-password-file: %s: want one line of 1 to %d bytes, all of which can be seen", file, maxPassword)
	}
	return password, nil
}

// add adds the flags that say the same of a node and of a gateway.
func (f *entranceFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.cfg.ClientListen, "client-listen", defaultClientAddress, "where to listen for clients")
	flags.StringVar(&f.cfg.RespListen, "resp", "", "where to listen for clients of Redis (default: nowhere); with certificates, such clients need TLS, too")
	flags.StringVar(&f.passwordFile, "resp-password-file", "", "file with the password that clients of --resp give (default: none is wanted)")
	flags.BoolVar(&f.cfg.Pprof, "pprof", false, "serve profiles of the process at --http-listen, too, under /debug/pprof/")
	flags.StringVar(&f.cfg.OTLP, "otlp", "", "URL of a collector that takes OpenTelemetry's traces over gRPC, such as http://127.0.0.1:4317 (default: none)")
	flags.Float64Var(&f.cfg.OTLPSample, "otlp-sample", 0.01, "share of the calls that leave a trace at --otlp, 0 to 1, beside those whose client asks for one")
	flags.BoolVar(&f.cfg.Unprotected, "unprotected", false, "without certificates, listen also where other machines come in: whoever does reads and writes")
	flags.StringVar(&f.logFormat, "log-format", logs.Console, "of the log on standard error: console or json")
}
