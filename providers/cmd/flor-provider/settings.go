package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/providers/settings"
)

// target is the provider on which a command acts. It consists of one of this host's clusters and of
// the settings file. The default path of that file depends on the cluster.
type target struct {
	hostdir.Instance
	settings string
}

// flags adds the flags that all commands have. If the program is called flor-provider_NAME, it
// inserts the flag --instance before the arguments.
func (t *target) flags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&t.settings, "settings", settings.File(t.Instance), "`FILE` of the settings, in HuJSON")
	file := f.Lookup("settings")
	f.Func("instance", "`NAME` of the instance of Florete, on a host that belongs to several clusters", func(name string) (err error) {
		if t.Instance, err = hostdir.ParseInstance(name); err == nil && !file.Changed {
			file.DefValue = settings.File(t.Instance)
			t.settings = file.DefValue
		}
		return err
	})
	if _, name, ok := strings.Cut(root.Name(), "flor-provider_"); ok {
		root.SetArgs(append([]string{"--instance=" + name}, os.Args[1:]...))
	}
}

// withSettings completes a command that needs the settings of a kind. If kind is empty, the command
// gets the common settings.
func (t *target) withSettings(kind string, cmd *cobra.Command, run func(*cobra.Command, *settings.Settings) error) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := settings.Load(t.Instance, t.settings, kinds, kind)
		if err != nil {
			return err
		}
		return run(cmd, s)
	}
	return cmd
}
