{ base, merge, ... }: merge base {
  services.blog = { host = "alpha"; port = 1; };
  groups.apps = [ "wiki" "blog" ];
}
