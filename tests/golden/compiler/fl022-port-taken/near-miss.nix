{ base, merge, ... }: merge base {
  services.blog = { host = "alpha"; port = 8080; };
  # TCP and UDP have ports of their own.
  services.dns = { host = "beta"; port = 8080; protocol = "udp"; };
  # One program behind two names.
  services.zine = { host = "beta"; port = 8080; upstream = "127.0.0.1:8080"; };
}
