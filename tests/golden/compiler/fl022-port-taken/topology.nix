{ base, merge, ... }: merge base {
  services.blog = { hosts = [ "alpha" "beta" ]; port = 8080; };
  services.zine = { host = "beta"; port = 8080; };
}
