;BEGIN { %CORE::GLOBAL:: = (); }
