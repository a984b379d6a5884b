{ base, merge, ... }: merge base {
  services.wiki.hosts = [ "alpha" ];
  services.blog = { host = "alpha"; replicas = 2; port = 1; placement.near = [ "beta" ]; };
  services.shop = { host = "alpha"; port = 2; listenPort = 3; upstream = "unix:/run/shop"; };
}
