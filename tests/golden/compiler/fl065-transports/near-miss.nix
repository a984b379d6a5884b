{ base, merge, ... }:
merge base {
  hosts.alpha.transport = "tcp"; # it reaches no service of the others
  hosts.beta.transport = "quic";
  services.wiki.transport = "quic";
}
