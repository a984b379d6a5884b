{ base, merge, ... }: merge base {
  services.wiki.protocol = "http";
}
