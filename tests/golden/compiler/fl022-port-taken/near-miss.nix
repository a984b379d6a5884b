{ base, merge, ... }: merge base {
  services.blog = { host = "alpha"; port = 8080; };
  # One program behind two names.
  services.zine = { host = "beta"; port = 8080; upstream = "127.0.0.1:8080"; };
}
