{ base, merge, ... }: merge base {
  services.wiki.host = "btea";
  services.blog = { hosts = [ "alpha" "gamma" ]; port = 1; };
  providers.cert.hosts = [ "alphas" ];
}
