{ base, merge, ... }: merge base {
  services.wiki.protocol = "udp";
}
