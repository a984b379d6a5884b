package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// DOT returns a graph of the cluster in DOT, the language of Graphviz. Each host is a subgraph.
func DOT(c Cluster) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", quoted(c.Name))
	b.WriteString("  rankdir=LR; compound=true; fontname=\"sans-serif\"; fontsize=12; node [fontname=\"sans-serif\" fontsize=11]; edge [fontname=\"sans-serif\" fontsize=9];\n")
	c.write(&form{
		Builder: &b,
		host: func(id, name string, kinds []string, inside []string) {
			label := name
			if len(kinds) > 0 {
				label += "\nprovides " + strings.Join(kinds, ", ")
			}
			fmt.Fprintf(&b, "  subgraph %s {\n    label=%s; style=rounded;\n    %s [label=\"node\" shape=point];\n", quoted("cluster "+id), quoted(label), quoted(id))
			for _, line := range inside {
				b.WriteString("    " + line + "\n")
			}
			b.WriteString("  }\n")
		},
		service: func(id, name string) string { return fmt.Sprintf("%s [label=%s shape=box];", quoted(id), quoted(name)) },
		user: func(id, name string) string {
			return fmt.Sprintf("%s [label=%s shape=box style=rounded];", quoted(id), quoted(name))
		},
		role: func(id, label string) string {
			return fmt.Sprintf("  %s [label=%s shape=ellipse];\n", quoted(id), quoted(label))
		},
		holds: func(from, role string) string {
			return fmt.Sprintf("  %s -> %s [arrowhead=none arrowtail=dot dir=both];\n", quoted(from), quoted(role))
		},
		reaches: func(role, to string, relayed bool) string {
			style := ""
			if relayed {
				style = " [style=dashed]"
			}
			return fmt.Sprintf("  %s -> %s%s;\n", quoted(role), quoted(to), style)
		},
		outside: func(from, to string) string {
			return fmt.Sprintf("  %s [shape=plaintext]; %s -> %s [style=dotted];\n", quoted(to), quoted(from), quoted(to))
		},
		strangers: func(to, services string) string {
			return fmt.Sprintf("  strangers [shape=plaintext]; strangers -> %s [label=%s color=orange penwidth=2];\n", quoted(to), quoted(services))
		},
		needs: func(from, to, kinds string) string {
			return fmt.Sprintf("  %s -> %s [label=%s style=dashed constraint=false];\n", quoted(from), quoted(to), quoted(kinds))
		},
	})
	b.WriteString("}\n")
	return []byte(b.String())
}

// Mermaid returns a flowchart of the cluster in the language of Mermaid, for Markdown pages.
func Mermaid(c Cluster) []byte {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	ids := map[string]string{}
	// Mermaid's IDs are plain words, some of which are reserved.
	id := func(name string) string {
		if ids[name] == "" {
			ids[name] = fmt.Sprintf("n%d", len(ids)+1)
		}
		return ids[name]
	}
	c.write(&form{
		Builder: &b,
		host: func(host, name string, kinds []string, inside []string) {
			label := name
			if len(kinds) > 0 {
				label += ", provides " + strings.Join(kinds, ", ")
			}
			fmt.Fprintf(&b, "  subgraph %s [%s]\n    %s((node))\n", id("host "+name), escaped(label), id(host))
			for _, line := range inside {
				b.WriteString("    " + line + "\n")
			}
			b.WriteString("  end\n")
		},
		service: func(service, name string) string { return fmt.Sprintf("%s[%s]", id(service), escaped(name)) },
		user:    func(user, name string) string { return fmt.Sprintf("%s([%s])", id(user), escaped(name)) },
		role:    func(role, label string) string { return fmt.Sprintf("  %s{{%s}}\n", id(role), escaped(label)) },
		holds:   func(from, role string) string { return fmt.Sprintf("  %s --o %s\n", id(from), id(role)) },
		reaches: func(role, to string, relayed bool) string {
			arrow := "-->"
			if relayed {
				arrow = "-.->"
			}
			return fmt.Sprintf("  %s %s %s\n", id(role), arrow, id(to))
		},
		outside: func(from, to string) string {
			return fmt.Sprintf("  %s --> %s>%s]\n", id(from), id("outside "+to), escaped(to))
		},
		strangers: func(to, services string) string {
			return fmt.Sprintf("  %s>%s] -. %s .-> %s\n", id("strangers"), escaped("strangers"), escaped(services), id(to))
		},
		needs: func(from, to, kinds string) string {
			return fmt.Sprintf("  %s -. %s .-> %s\n", id(from), escaped(kinds), id(to))
		},
	})
	return []byte(b.String())
}

// form describes how a language of graphs writes the parts of a cluster.
type form struct {
	*strings.Builder
	host          func(id, name string, kinds, inside []string)
	service, user func(id, name string) string
	role          func(id, label string) string
	holds         func(from, to string) string
	reaches       func(from, to string, relayed bool) string
	outside       func(from, to string) string     // from a service to its target
	strangers     func(to, services string) string // through an ingress
	needs         func(from, to, kinds string) string
}

// write writes the parts of a cluster in a fixed order: hosts, roles, edges.
func (c Cluster) write(f *form) {
	roles := c.roles()
	for _, name := range slices.Sorted(maps.Keys(c.Hosts)) {
		h := c.Hosts[name]
		var inside []string
		for _, s := range h.Services {
			inside = append(inside, f.service("service/"+name+"/"+s, s+seen(c.Services[s])))
			for _, port := range c.apart(roles, s, name) {
				inside = append(inside, f.service("service/"+name+"/"+port, port))
			}
		}
		for _, u := range h.Users {
			inside = append(inside, f.user("user/"+name+"/"+u, u))
		}
		f.host("node/"+name, name, h.Kinds, inside)
	}
	for _, r := range roles {
		label := r.name
		if r.every {
			label += ", every node"
		}
		f.WriteString(f.role("role/"+r.name, label))
	}
	for _, r := range roles {
		id := "role/" + r.name
		for _, n := range r.nodes {
			f.WriteString(f.holds("node/"+n, id))
		}
		for _, u := range r.users {
			for _, h := range c.Users[u].Hosts {
				f.WriteString(f.holds("user/"+h+"/"+u, id))
			}
		}
		for _, s := range r.by {
			for _, h := range c.Services[s].Hosts {
				f.WriteString(f.holds("service/"+h+"/"+s, id))
			}
		}
		for _, s := range r.services {
			for _, h := range c.Services[s].Hosts {
				for _, end := range c.reached(r, s, h) {
					f.WriteString(f.reaches(id, "service/"+h+"/"+end, c.Hosts[h].OnlyRelayed()))
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Hosts)) {
		for _, s := range c.Hosts[name].Services {
			if to := c.Services[s].Outside; to != "" {
				f.WriteString(f.outside("service/"+name+"/"+s, to))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Hosts)) {
		if entered := c.entered(name); len(entered) > 0 {
			f.WriteString(f.strangers("node/"+name, strings.Join(entered, ", ")))
		}
	}
	for _, host := range slices.Sorted(maps.Keys(c.Needs)) {
		for _, provider := range slices.Sorted(maps.Keys(c.Needs[host])) {
			if provider != host {
				f.WriteString(f.needs("node/"+host, "node/"+provider, strings.Join(c.Needs[host][provider], ", ")))
			}
		}
	}
}

// quoted returns a text as a string of DOT.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// escaped returns a text as a label of Mermaid.
func escaped(s string) string {
	return `"` + strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", "\n", " ").Replace(s) + `"`
}
