{ base, merge, ... }: merge base {
  providers.config.hosts = [ "alpha" ];
  services.wiki.files.a = { ref = "a"; after = [ "config-wiki-b" "config-wiki-c" ]; };
  services.wiki.files.b = { ref = "b"; after = [ "config-wiki-c" ]; };
  services.wiki.files.c.ref = "c";
}
