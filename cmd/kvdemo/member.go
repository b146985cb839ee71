// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/cmd/kvdemo/internal/client"
	"github.com/weftraft/weft/cmd/kvdemo/kvpb"
)

// memberTimeout is the default of --timeout for changes of the members: a new
// node may have much to catch up with.
const memberTimeout = 5 * time.Minute

func newMember() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "member",
		Short: "List, add, promote and remove nodes of a cluster",
		Long: "member changes who is in a cluster while it runs. A change that was cut short is completed\n" +
			"by the same command.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMemberList(), newMemberAdd(), newMemberPromote(), newMemberRemove())
	return cmd
}

func newMemberList() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the members, what they are, and who is behind",
	}
	return f.runs(cmd, func(ctx context.Context, c *client.Client, _ []string) error {
		return f.listMembers(cmd, client.AdminAt(ctx, c, kvpb.AdminClient.Members, &kvpb.MembersRequest{}))
	})
}

// listMembers prints the answer of the first endpoint to answer, with the answers of
// all leaders: members' distance behind, silent members, and members with a lost log.
func (f *clientFlags) listMembers(cmd *cobra.Command, answers []client.Answer[*kvpb.MembersResponse]) error {
	var first *kvpb.MembersResponse
	var errs []error
	behind, silent, lost := map[uint64]*uint64{}, map[uint64]bool{}, map[uint64]bool{}
	for _, a := range answers {
		if a.Err != nil {
			errs = append(errs, a.Err)
			continue
		}
		if first == nil {
			first = a.Response
		}
		for _, m := range a.Response.GetMembers() {
			if lag := m.Behind; lag != nil && (behind[m.GetId()] == nil || *lag > *behind[m.GetId()]) {
				behind[m.GetId()] = lag
			}
			silent[m.GetId()] = silent[m.GetId()] || m.GetSilent()
			lost[m.GetId()] = lost[m.GetId()] || m.GetLogLost()
		}
	}
	if first == nil {
		return fmt.Errorf("no node answered: %w", errors.Join(errs...))
	}
	for _, m := range first.GetMembers() {
		m.Behind, m.Silent, m.LogLost = behind[m.GetId()], silent[m.GetId()], lost[m.GetId()]
	}
	return f.printMembers(cmd, first)
}

func (f *clientFlags) printMembers(cmd *cobra.Command, resp *kvpb.MembersResponse) error {
	t := f.table(cmd, "NODE", "ADDRESS", "ROLE", "LEADS", "BEHIND")
	for _, m := range resp.GetMembers() {
		behind := "-"
		if m.Behind != nil {
			behind = strconv.FormatUint(m.GetBehind(), 10)
		}
		if m.GetSilent() {
			behind += ", silent"
		}
		role := m.GetRole()
		if m.GetLogLost() {
			role += ", log lost"
		}
		if err := t.row(m, m.GetId(), m.GetAddress(), role, groupList(m.GetLeads()), behind); err != nil {
			return err
		}
	}
	return t.flush()
}

// groupList prints numbers of groups, at most a few of them.
func groupList(groups []uint64) string {
	const most = 8
	var words []string
	for i, g := range groups {
		if i == most {
			words = append(words, fmt.Sprintf("and %d more", len(groups)-most))
			break
		}
		words = append(words, strconv.FormatUint(g, 10))
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, " ")
}

// nodeID reads an argument of a command.
func nodeID(cmd *cobra.Command, arg string) (uint64, error) {
	id, err := strconv.ParseUint(arg, 10, 64)
	if err != nil || id == 0 {
		return 0, fmt.Errorf("%s: node id %q, want a number of 1 or more; %w", cmd.Name(), arg, errUsage)
	}
	return id, nil
}

// memberVerb makes a command that changes a member and prints all.
func memberVerb(use, short string, args int, do func(ctx context.Context, c *client.Client, id uint64, args []string) (*kvpb.MembersResponse, error)) *cobra.Command {
	f := clientFlags{timeout: memberTimeout}
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(args),
	}
	return f.runs(cmd, func(ctx context.Context, c *client.Client, args []string) error {
		id, err := nodeID(cmd, args[0])
		if err != nil {
			return err
		}
		resp, err := do(ctx, c, id, args[1:])
		if err != nil {
			return err
		}
		return f.printMembers(cmd, resp)
	})
}

func newMemberAdd() *cobra.Command {
	var learner bool
	cmd := memberVerb("add ID HOST:PORT", "Add a node: as a learner, and as a voter once it has caught up", 2,
		func(ctx context.Context, c *client.Client, id uint64, args []string) (*kvpb.MembersResponse, error) {
			if err := client.CheckAddress(args[0]); err != nil {
				return nil, fmt.Errorf("add: %w; %w", err, errUsage)
			}
			return client.Admin(ctx, c, kvpb.AdminClient.AddMember, &kvpb.AddMemberRequest{Id: id, Address: args[0], Learner: learner})
		})
	cmd.Long = "add adds a node that was never in the cluster. HOST:PORT is where it listens for the other\n" +
		"nodes. Start it before or meanwhile, with: kvdemo serve --join. It gets a vote only once it\n" +
		"has caught up, so a node that does not come up does no harm."
	cmd.Example = "  kvdemo serve --join --id 4 --peers 1=10.0.0.1:7200,2=10.0.0.2:7200,3=10.0.0.3:7200,4=10.0.0.4:7200 \\\n" +
		"    --client-listen 10.0.0.4:7300 --data /var/lib/kvdemo \\\n" +
		"    --tls-cert node-4.pem --tls-key node-4-key.pem --tls-ca ca.pem &\n" +
		"  kvdemo member add 4 10.0.0.4:7200"
	cmd.Flags().BoolVar(&learner, "reader", false, "leave it a learner, which has the data, answers reads, and has no vote")
	cmd.Flags().BoolVar(&learner, "learner", false, "the same as --reader")
	return cmd
}

func newMemberPromote() *cobra.Command {
	return memberVerb("promote ID", "Make a learner a voter, once it has caught up", 1,
		func(ctx context.Context, c *client.Client, id uint64, _ []string) (*kvpb.MembersResponse, error) {
			return client.Admin(ctx, c, kvpb.AdminClient.PromoteMember, &kvpb.PromoteMemberRequest{Id: id})
		})
}

func newMemberRemove() *cobra.Command {
	var force bool
	cmd := memberVerb("remove ID", "Remove a node for good", 1,
		func(ctx context.Context, c *client.Client, id uint64, _ []string) (*kvpb.MembersResponse, error) {
			return client.Admin(ctx, c, kvpb.AdminClient.RemoveMember, &kvpb.RemoveMemberRequest{Id: id, Force: force})
		})
	cmd.Long = "remove removes a node, running or not. If it leads, it hands over first; it stops when it\n" +
		"hears of it. Its id and its data directory are of no use any more. A node is not removed if\n" +
		"too few of those that remain can be reached, unless --force says so."
	cmd.Flags().BoolVar(&force, "force", false, "remove it even if the cluster may stop for want of a majority")
	return cmd
}

func newTransfer() *cobra.Command {
	var f clientFlags
	var group uint64
	cmd := &cobra.Command{
		Use:   "transfer ID",
		Short: "Make a node the leader, of one group or of all",
		Args:  cobra.ExactArgs(1),
	}
	cmd.Flags().Uint64Var(&group, "group", 0, "of this group only (0: all)")
	return f.runs(cmd, func(ctx context.Context, c *client.Client, args []string) error {
		to, err := nodeID(cmd, args[0])
		if err == nil {
			_, err = client.Admin(ctx, c, kvpb.AdminClient.Transfer, &kvpb.TransferRequest{Group: group, To: to})
		}
		if err != nil {
			return err
		}
		return f.print(cmd, transferResult{Leader: to, Group: group})
	})
}

func newSnapshot() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Have each of the endpoints' nodes make its state durable and shorten its log",
		Long: "snapshot has nodes write what they have applied to disk now. The log behind it is dropped,\n" +
			"but for what serve --retain-bytes keeps. A node that starts again has less to replay then:\n" +
			"do it before an upgrade, or before a copy of the data directory of a stopped node is made.",
	}
	return f.runs(cmd, func(ctx context.Context, c *client.Client, _ []string) error {
		return f.printSnapshots(cmd, client.AdminAt(ctx, c, kvpb.AdminClient.Snapshot, &kvpb.SnapshotRequest{}))
	})
}

// printSnapshots prints a row for each node and group. Each node must succeed.
func (f *clientFlags) printSnapshots(cmd *cobra.Command, answers []client.Answer[*kvpb.SnapshotResponse]) error {
	t := f.table(cmd, "ENDPOINT", "GROUP", "DURABLE", "LOG FROM", "LOG")
	return rowsOf(t, answers, func(endpoint string, resp *kvpb.SnapshotResponse) error {
		for _, g := range resp.GetGroups() {
			r := snapshotResult{Endpoint: endpoint, Group: g.GetId(), Durable: g.GetDurable(), FirstIndex: g.GetFirstIndex(), LogBytes: resp.GetLogBytes()}
			if err := t.row(r, r.Endpoint, r.Group, r.Durable, r.FirstIndex, size(r.LogBytes)); err != nil {
				return err
			}
		}
		return nil
	})
}
