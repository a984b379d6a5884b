{ base, merge, ... }:
merge base {
  hosts.beta.transport = "tcp";
  services.wiki.transport = "quic";
}
