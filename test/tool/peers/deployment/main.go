// Command deployment reads the files of deploy/ as the programs do that they are for, and says what is wrong with them.
//
//	deployment compose FILE [PROFILE...]   prints the services that Compose would start as JSON; without a profile those of .env
//	deployment dashboard FILE...           holds dashboards to Grafana's schema: an unknown field is an error
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	if len(os.Args) < 3 {
		fail("usage: deployment compose FILE [PROFILE...] | deployment dashboard FILE...")
	}
	var err error
	switch os.Args[1] {
	case "compose":
		err = printProject(os.Args[2], os.Args[3:])
	case "dashboard":
		plugins.RegisterDefaultPlugins()
		for _, path := range os.Args[2:] {
			if err = checkDashboard(path); err != nil {
				err = fmt.Errorf("%s: %w", path, err)
				break
			}
		}
	default:
		err = fmt.Errorf("unknown command: %s", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func printProject(path string, profiles []string) error {
	options, err := cli.NewProjectOptions([]string{path}, cli.WithEnvFiles(), cli.WithDotEnv, cli.WithDefaultProfiles(profiles...))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	text, err := project.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

func checkDashboard(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !json.Valid(text) {
		return fmt.Errorf("is no JSON")
	}
	var read dashboard.Dashboard
	if err := problemOf(read.UnmarshalJSONStrict(text)); err != nil {
		return err
	}
	return problemOf(read.Validate())
}

// problemOf returns nil for an empty list, which the schema's package returns where nothing is wrong.
func problemOf(err error) error {
	if list := (cog.BuildErrors)(nil); errors.As(err, &list) && len(list) == 0 {
		return nil
	}
	return err
}

func fail(what any) {
	fmt.Fprintln(os.Stderr, what)
	os.Exit(1)
}
