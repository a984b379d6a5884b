{ base, merge, ... }: merge base {
  services.blog = { hosts = [ "alpha" "beta" ]; port = 8080; };
  services.zine = { host = "beta"; port = 8080; };
  services.dns = { host = "beta"; port = 53; protocol = "udp"; };
  services.names = { host = "beta"; port = 53; protocol = "udp"; };
}
