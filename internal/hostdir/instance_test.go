package hostdir

import "testing"

func TestInstance(t *testing.T) {
	for name, want := range map[string]string{"": "florete-agent.service", "blue": "florete_blue-agent.service", "b2-x": "florete_b2-x-agent.service"} {
		m, err := ParseInstance(name)
		if err != nil || m.Unit("agent.service") != want {
			t.Errorf("ParseInstance(%q).Unit = %s, %v, want %s", name, m.Unit("agent.service"), err, want)
		}
	}
	m := Instance("blue")
	if m.State() != "/var/lib/florete_blue" || m.Run() != "/run/florete_blue" || m.Etc() != "/etc/florete_blue" {
		t.Error(m.State(), m.Run(), m.Etc())
	}
	if m.Agent() != "/run/florete_blue/agent/status.sock" || m.Refetch() != "/run/florete_blue-host" {
		t.Error(m.Agent(), m.Refetch())
	}
	if m.Program("flor") != "flor_blue" || Instance("").Program("flor") != "flor" {
		t.Error(m.Program("flor"), Instance("").Program("flor"))
	}
	for _, name := range []string{"Blue", "2nd", "-b", "b-", "a_b", "../x", "fifteen-letters", "blue\n"} {
		if m, err := ParseInstance(name); err == nil {
			t.Errorf("ParseInstance(%q) = %q, want an error", name, m)
		}
	}
}
