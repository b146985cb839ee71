// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftraft/weft/internal/certs"
)

// maxDays is a hundred years.
const maxDays = 36525

func newCerts() *cobra.Command {
	var cluster uint64
	var nodes, clients, admins string
	var hosts []string
	var days int
	var missing bool
	cmd := &cobra.Command{
		Use:   "certs DIRECTORY",
		Short: "Make an authority and certificates for nodes, clients and administrators",
		Long: "certs makes what serve and the client verbs want with --tls-cert, --tls-key and --tls-ca:\n" +
			"ca.pem, and for each node, client and administrator a certificate and a key. An authority\n" +
			"that is there is used, and a new one lasts ten years; no file is overwritten. Keep ca-key.pem\n" +
			"away from the nodes: it can make more.",
		Example: "  kvdemo certs tls --nodes 1,2,3 --clients ann --admins ops\n" +
			"  kvdemo serve ... --tls-cert tls/node-1.pem --tls-key tls/node-1-key.pem --tls-ca tls/ca.pem\n" +
			"  kvdemo get ... --tls-cert tls/client-ann.pem --tls-key tls/client-ann-key.pem --tls-ca tls/ca.pem\n" +
			"  kvdemo member list ... --tls-cert tls/admin-ops.pem --tls-key tls/admin-ops-key.pem --tls-ca tls/ca.pem",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var subjects []certs.Subject
			for _, word := range words(nodes) {
				id, err := strconv.ParseUint(word, 10, 64)
				if err != nil || id == 0 {
					return fmt.Errorf("--nodes: %q, want ids of 1 or more, separated by commas; %w", word, errUsage)
				}
				subjects = append(subjects, certs.Subject{Cluster: cluster, Node: id, Hosts: hosts})
			}
			for _, name := range words(clients) {
				subjects = append(subjects, certs.Subject{Cluster: cluster, Client: name})
			}
			for _, name := range words(admins) {
				subjects = append(subjects, certs.Subject{Cluster: cluster, Admin: name})
			}
			switch {
			case len(subjects) == 0:
				return fmt.Errorf("--nodes, --clients, --admins: none, want somebody to certify; %w", errUsage)
			case cluster == 0:
				return fmt.Errorf("--cluster: 0, want 1 or more; %w", errUsage)
			case days < 1 || days > maxDays:
				return fmt.Errorf("--days: %d, want 1 to %d; %w", days, maxDays, errUsage)
			}
			if missing {
				all := len(subjects)
				if subjects = slices.DeleteFunc(subjects, func(s certs.Subject) bool { return made(args[0], s) }); len(subjects) == 0 {
					_, err := fmt.Fprintf(cmd.OutOrStdout(), "all %d certificates are in %s already\n", all, args[0])
					return err
				}
			}
			if err := certs.Generate(args[0], certs.ValidFor(time.Duration(days)*24*time.Hour), subjects...); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%d certificates in %s, good for %d days\n", len(subjects), args[0], days)
			return err
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&cluster, "cluster", 1, "number of the cluster, 1 or more")
	flags.StringVar(&nodes, "nodes", "", "ids of nodes, separated by commas")
	flags.StringVar(&clients, "clients", "", "names of clients, of small letters, digits and dashes, separated by commas")
	flags.StringVar(&admins, "admins", "", "names of clients that may also use the commands for operators (member, roster, transfer, snapshot, backup, log-level, leader-weight), separated by commas")
	flags.StringSliceVar(&hosts, "hosts", nil, "names and addresses of the nodes' machines, for other programs; kvdemo does not look at them")
	flags.BoolVar(&missing, "missing", false, "make only what is not in DIRECTORY yet, and succeed if all is there: for a service that runs at each start")
	flags.IntVar(&days, "days", 365, fmt.Sprintf("how long they are good, 1 to %d", maxDays))
	return cmd
}

// made reports whether both files of a subject are in dir.
func made(dir string, s certs.Subject) bool {
	files := s.Files(dir)
	for _, name := range []string{files.Cert, files.Key} {
		if _, err := os.Stat(name); err != nil {
			return false // Generate says what is wrong, if the file is there
		}
	}
	return true
}

// words splits a list at commas; an empty one has no words.
func words(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
