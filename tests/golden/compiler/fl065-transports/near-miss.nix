{ base, merge, ... }:
merge base {
  hosts.alpha.transport = "tcp"; # which reaches nothing of the others
  hosts.beta.transport = "quic";
  services.wiki.transport = "quic";
}
