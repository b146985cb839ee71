// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/weftraft/weft/cmd/internal/usage"
)

// A node takes each setting from its flag; or else from the environment, as
// WEFT_KVDEMO_ and the flag's name in capitals, such as WEFT_KVDEMO_CLIENT_LISTEN; or
// else from the file of --config, which has a line "flag: value" for each. A name that
// is no flag is a mistake in any of the three.
const settingsPrefix = "WEFT_KVDEMO_"

// maxSettingsBytes bounds the file of --config.
const maxSettingsBytes = 1 << 20

// configFlag is the one flag that a file cannot have.
const configFlag = "config"

// variableOf returns the environment variable of a flag.
func variableOf(flag string) string {
	return settingsPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// addSettings lets a command take its flags from a file and the environment.
func addSettings(cmd *cobra.Command) {
	cmd.Flags().String(configFlag, "", "file with settings, a line \"flag: value\" for each, in YAML; the environment ("+settingsPrefix+"ID and so on) counts more, and flags count most")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := takeSettings(cmd.Flags(), os.Environ()); err != nil {
			return fmt.Errorf("%w; %w", err, errUsage)
		}
		return nil
	}
}

// takeSettings sets the flags that were not given. The error names every mistake.
func takeSettings(flags *pflag.FlagSet, environment []string) error {
	given := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	var errs []error
	set := func(name, value, source string) {
		if given[name] {
			return
		}
		given[name] = true
		if err := flags.Set(name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", source, usage.Explain(err)))
		}
	}
	errs = append(errs, fromEnvironment(flags, environment, set)...)
	if file := flags.Lookup(configFlag).Value.String(); file != "" {
		errs = append(errs, fromFile(flags, file, set))
	}
	return errors.Join(errs...)
}

// setting reports whether a flag can be given otherwise.
func setting(flags *pflag.FlagSet, name string) bool {
	f := flags.Lookup(name)
	return f != nil && !f.Hidden && name != "help"
}

// fromEnvironment sets what the environment has.
func fromEnvironment(flags *pflag.FlagSet, environment []string, set func(name, value, source string)) (errs []error) {
	for _, e := range slices.Sorted(slices.Values(environment)) {
		variable, value, _ := strings.Cut(e, "=")
		rest, ok := strings.CutPrefix(variable, settingsPrefix)
		if !ok {
			continue
		}
		name := strings.ToLower(strings.ReplaceAll(rest, "_", "-"))
		if !setting(flags, name) || variable != variableOf(name) {
			errs = append(errs, fmt.Errorf("%s: there is no flag --%s; want %s and a flag of kvdemo serve in capitals", variable, name, settingsPrefix))
			continue
		}
		set(name, value, variable)
	}
	return errs
}

// fromFile sets what a file has.
func fromFile(flags *pflag.FlagSet, file string, set func(name, value, source string)) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--config: %s does not exist", file)
	case err != nil:
		return fmt.Errorf("--config: %w", err)
	case info.Size() > maxSettingsBytes:
		return fmt.Errorf("--config: %s has %d bytes, want at most %d", file, info.Size(), maxSettingsBytes)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	var settings yaml.Node
	if err := yaml.Unmarshal(text, &settings); err != nil {
		return fmt.Errorf("--config: %s: %w", file, err)
	}
	if len(settings.Content) == 0 {
		return nil // it is empty
	}
	top := settings.Content[0]
	if top.Kind != yaml.MappingNode {
		return fmt.Errorf("--config: %s:%d: want lines such as \"id: 1\"", file, top.Line)
	}
	var errs []error
	seen := map[string]bool{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		at := fmt.Sprintf("--config: %s:%d: %s", file, key.Line, printable(key.Value))
		switch {
		case !setting(flags, key.Value) || key.Value == configFlag:
			errs = append(errs, fmt.Errorf("%s: there is no such setting; want a flag of kvdemo serve without its dashes", at))
		case seen[key.Value]:
			errs = append(errs, fmt.Errorf("%s: it is there twice", at))
		case value.Kind != yaml.ScalarNode:
			errs = append(errs, fmt.Errorf("%s: want one value, written as for the flag", at))
		default:
			set(key.Value, value.Value, at)
		}
		seen[key.Value] = true
	}
	return errors.Join(errs...)
}
