"""Runs tests in one process and the solution in another. The two exchange messages.

    tests            role `tests`: runs test code, in which undefined names mean the solution's functions and classes
    session            sends its requests to the solution's process, one after the other
    remote_objects     proxies for the solution's functions, classes and objects, with `==`, `<`, `+`
    remote_values      encodes values for the solution's process and decodes its answers
    surroundings         keeps both processes alike: names that tests replace, streams, folder

    serve            role `serve`: loads the solution, answers requests, and numbers the solution's objects

    shared_objects   objects that both processes have: types and modules by name, arguments and containers by index

Suites that are plain data (calls with expected results) need none of this.
"""
